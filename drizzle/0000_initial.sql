CREATE TABLE "cue_clips" (
	"id" uuid PRIMARY KEY NOT NULL,
	"exercise_id" uuid NOT NULL,
	"language" text NOT NULL,
	"name" text NOT NULL,
	"sha256" text NOT NULL,
	"bytes" bigint NOT NULL,
	"duration_ms" integer NOT NULL,
	"uploaded_by" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "cue_clips_key" UNIQUE("exercise_id","language","name"),
	CONSTRAINT "cue_clips_sha256_hex" CHECK ("cue_clips"."sha256" ~ '^[0-9a-f]{64}$')
);
--> statement-breakpoint
CREATE TABLE "exercise_sources" (
	"id" uuid PRIMARY KEY NOT NULL,
	"exercise_id" uuid NOT NULL,
	"sha256" text NOT NULL,
	"bytes" bigint NOT NULL,
	"duration_ms" integer NOT NULL,
	"report" jsonb NOT NULL,
	"uploaded_by" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "exercise_sources_sha256_hex" CHECK ("exercise_sources"."sha256" ~ '^[0-9a-f]{64}$'),
	CONSTRAINT "exercise_sources_duration_positive" CHECK ("exercise_sources"."duration_ms" > 0)
);
--> statement-breakpoint
CREATE TABLE "exercises" (
	"id" uuid PRIMARY KEY NOT NULL,
	"tier" text NOT NULL,
	"org_id" uuid,
	"names" jsonb NOT NULL,
	"rep_marks" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"created_by" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "exercises_tier_known" CHECK ("exercises"."tier" in ('platform', 'org')),
	CONSTRAINT "exercises_owner_fits_tier" CHECK (("exercises"."tier" = 'platform') = ("exercises"."org_id" is null))
);
--> statement-breakpoint
CREATE TABLE "members" (
	"id" uuid PRIMARY KEY NOT NULL,
	"org_id" uuid,
	"subject" text NOT NULL,
	"role" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "members_org_subject_key" UNIQUE NULLS NOT DISTINCT("org_id","subject"),
	CONSTRAINT "members_role_known" CHECK ("members"."role" in ('superadmin', 'manager', 'specialist')),
	CONSTRAINT "members_superadmin_has_no_org" CHECK (("members"."role" = 'superadmin') = ("members"."org_id" is null))
);
--> statement-breakpoint
CREATE TABLE "organisations" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "assignments" (
	"id" uuid PRIMARY KEY NOT NULL,
	"program_id" uuid NOT NULL,
	"patient_id" text NOT NULL,
	"notify_when_ready" boolean DEFAULT false NOT NULL,
	"assigned_by" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "assignments_key" UNIQUE("program_id","patient_id")
);
--> statement-breakpoint
CREATE TABLE "notifications" (
	"id" uuid PRIMARY KEY NOT NULL,
	"recipient" text NOT NULL,
	"org_id" uuid,
	"kind" text NOT NULL,
	"payload" jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"read_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "programs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"org_id" uuid NOT NULL,
	"title" text NOT NULL,
	"language" text NOT NULL,
	"status" text DEFAULT 'draft' NOT NULL,
	"created_by" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	"published_at" timestamp with time zone,
	"published_by" text,
	"archived_at" timestamp with time zone,
	CONSTRAINT "programs_status_known" CHECK ("programs"."status" in ('draft', 'published', 'archived')),
	CONSTRAINT "programs_published_has_time" CHECK ("programs"."status" <> 'published' or "programs"."published_at" is not null)
);
--> statement-breakpoint
CREATE TABLE "runs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"session_id" uuid NOT NULL,
	"patient_id" text NOT NULL,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	"finished_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "session_items" (
	"id" uuid PRIMARY KEY NOT NULL,
	"session_id" uuid NOT NULL,
	"position" integer NOT NULL,
	"exercise_id" uuid NOT NULL,
	"dose" jsonb NOT NULL,
	"render_id" uuid,
	CONSTRAINT "session_items_order_key" UNIQUE("session_id","position")
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"id" uuid PRIMARY KEY NOT NULL,
	"org_id" uuid NOT NULL,
	"program_id" uuid,
	"position" integer DEFAULT 0 NOT NULL,
	"title" text NOT NULL,
	"status" text DEFAULT 'draft' NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	"published_at" timestamp with time zone,
	CONSTRAINT "sessions_status_known" CHECK ("sessions"."status" in ('draft', 'published', 'archived'))
);
--> statement-breakpoint
CREATE TABLE "exercise_renders" (
	"id" uuid PRIMARY KEY NOT NULL,
	"exercise_id" uuid NOT NULL,
	"recipe_hash" text NOT NULL,
	"language" text NOT NULL,
	"recipe" jsonb NOT NULL,
	"status" text DEFAULT 'pending' NOT NULL,
	"generation" integer DEFAULT 0 NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"max_attempts" integer DEFAULT 5 NOT NULL,
	"lease_token" uuid,
	"lease_expires_at" timestamp with time zone,
	"claimed_at" timestamp with time zone,
	"claimed_by" text,
	"progress_stage" text,
	"progress_percent" smallint,
	"dispatched_at" timestamp with time zone,
	"not_before" timestamp with time zone,
	"fair_key" text NOT NULL,
	"fair_tag" bigint NOT NULL,
	"urgent" boolean DEFAULT false NOT NULL,
	"master_sha256" text,
	"video_guid" text,
	"video_collection_id" text,
	"manifest_url" text,
	"captions_url" text,
	"poster_url" text,
	"baselines" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"duration_ms" integer,
	"transcode_started_at" timestamp with time zone,
	"transcode_checked_at" timestamp with time zone,
	"transcode_deadline_at" timestamp with time zone,
	"error_code" text,
	"error_message" text,
	"warnings" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ready_at" timestamp with time zone,
	CONSTRAINT "exercise_renders_key" UNIQUE("exercise_id","recipe_hash","language"),
	CONSTRAINT "exercise_renders_hash_hex" CHECK ("exercise_renders"."recipe_hash" ~ '^[0-9a-f]{64}$'),
	CONSTRAINT "exercise_renders_status_known" CHECK ("exercise_renders"."status" in ('pending', 'rendering', 'transcoding', 'ready', 'failed')),
	CONSTRAINT "exercise_renders_attempts_positive" CHECK ("exercise_renders"."attempts" >= 0 and "exercise_renders"."max_attempts" > 0 and "exercise_renders"."generation" >= 0),
	CONSTRAINT "exercise_renders_rendering_is_leased" CHECK ("exercise_renders"."status" <> 'rendering' or ("exercise_renders"."lease_token" is not null and "exercise_renders"."lease_expires_at" is not null)),
	CONSTRAINT "exercise_renders_lease_only_while_rendering" CHECK ("exercise_renders"."status" = 'rendering' or "exercise_renders"."lease_token" is null),
	CONSTRAINT "exercise_renders_ready_plays" CHECK ("exercise_renders"."status" <> 'ready' or ("exercise_renders"."manifest_url" is not null and "exercise_renders"."video_guid" is not null and "exercise_renders"."master_sha256" is not null and "exercise_renders"."ready_at" is not null)),
	CONSTRAINT "exercise_renders_transcoding_has_video" CHECK ("exercise_renders"."status" <> 'transcoding' or ("exercise_renders"."video_guid" is not null and "exercise_renders"."transcode_deadline_at" is not null)),
	CONSTRAINT "exercise_renders_failed_says_why" CHECK ("exercise_renders"."status" <> 'failed' or "exercise_renders"."error_code" is not null)
);
--> statement-breakpoint
CREATE TABLE "render_events" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"render_id" uuid NOT NULL,
	"generation" integer NOT NULL,
	"from_status" text,
	"to_status" text NOT NULL,
	"attempt" integer NOT NULL,
	"cause" text NOT NULL,
	"error" jsonb,
	"at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "webhook_events" (
	"id" uuid PRIMARY KEY NOT NULL,
	"video_guid" text NOT NULL,
	"library_id" bigint NOT NULL,
	"status" integer NOT NULL,
	"body" text NOT NULL,
	"verified_by" text NOT NULL,
	"received_at" timestamp with time zone DEFAULT now() NOT NULL,
	"applied_at" timestamp with time zone,
	"outcome" text,
	"tries" integer DEFAULT 0 NOT NULL,
	"next_try_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "cue_clips" ADD CONSTRAINT "cue_clips_exercise_id_exercises_id_fk" FOREIGN KEY ("exercise_id") REFERENCES "public"."exercises"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "exercise_sources" ADD CONSTRAINT "exercise_sources_exercise_id_exercises_id_fk" FOREIGN KEY ("exercise_id") REFERENCES "public"."exercises"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "exercises" ADD CONSTRAINT "exercises_org_id_organisations_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organisations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "members" ADD CONSTRAINT "members_org_id_organisations_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organisations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "assignments" ADD CONSTRAINT "assignments_program_id_programs_id_fk" FOREIGN KEY ("program_id") REFERENCES "public"."programs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_org_id_organisations_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organisations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "programs" ADD CONSTRAINT "programs_org_id_organisations_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organisations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_session_id_sessions_id_fk" FOREIGN KEY ("session_id") REFERENCES "public"."sessions"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "session_items" ADD CONSTRAINT "session_items_session_id_sessions_id_fk" FOREIGN KEY ("session_id") REFERENCES "public"."sessions"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "session_items" ADD CONSTRAINT "session_items_exercise_id_exercises_id_fk" FOREIGN KEY ("exercise_id") REFERENCES "public"."exercises"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "session_items" ADD CONSTRAINT "session_items_render_id_exercise_renders_id_fk" FOREIGN KEY ("render_id") REFERENCES "public"."exercise_renders"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "sessions" ADD CONSTRAINT "sessions_org_id_organisations_id_fk" FOREIGN KEY ("org_id") REFERENCES "public"."organisations"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "sessions" ADD CONSTRAINT "sessions_program_id_programs_id_fk" FOREIGN KEY ("program_id") REFERENCES "public"."programs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "exercise_renders" ADD CONSTRAINT "exercise_renders_exercise_id_exercises_id_fk" FOREIGN KEY ("exercise_id") REFERENCES "public"."exercises"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "render_events" ADD CONSTRAINT "render_events_render_id_exercise_renders_id_fk" FOREIGN KEY ("render_id") REFERENCES "public"."exercise_renders"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "exercise_sources_newest_idx" ON "exercise_sources" USING btree ("exercise_id","created_at" DESC NULLS LAST);--> statement-breakpoint
CREATE INDEX "exercises_org_idx" ON "exercises" USING btree ("org_id","id");--> statement-breakpoint
CREATE INDEX "assignments_patient_idx" ON "assignments" USING btree ("patient_id","id");--> statement-breakpoint
CREATE INDEX "notifications_recipient_idx" ON "notifications" USING btree ("recipient","created_at" DESC NULLS LAST);--> statement-breakpoint
CREATE INDEX "programs_org_idx" ON "programs" USING btree ("org_id","id");--> statement-breakpoint
CREATE INDEX "runs_patient_idx" ON "runs" USING btree ("patient_id","started_at" DESC NULLS LAST);--> statement-breakpoint
CREATE INDEX "runs_session_idx" ON "runs" USING btree ("session_id");--> statement-breakpoint
CREATE INDEX "session_items_render_idx" ON "session_items" USING btree ("render_id");--> statement-breakpoint
CREATE UNIQUE INDEX "sessions_order_key" ON "sessions" USING btree ("program_id","position") WHERE "sessions"."program_id" is not null;--> statement-breakpoint
CREATE INDEX "exercise_renders_claim_idx" ON "exercise_renders" USING btree ("urgent" DESC NULLS LAST,"fair_tag") WHERE "exercise_renders"."status" = 'pending';--> statement-breakpoint
CREATE INDEX "exercise_renders_dispatch_idx" ON "exercise_renders" USING btree ("dispatched_at") WHERE "exercise_renders"."status" = 'pending';--> statement-breakpoint
CREATE INDEX "exercise_renders_lease_idx" ON "exercise_renders" USING btree ("lease_expires_at") WHERE "exercise_renders"."status" = 'rendering';--> statement-breakpoint
CREATE INDEX "exercise_renders_transcode_idx" ON "exercise_renders" USING btree ("transcode_deadline_at") WHERE "exercise_renders"."status" = 'transcoding';--> statement-breakpoint
CREATE INDEX "exercise_renders_pending_tag_idx" ON "exercise_renders" USING btree ("fair_tag") WHERE "exercise_renders"."status" = 'pending';--> statement-breakpoint
CREATE INDEX "exercise_renders_claimed_tag_idx" ON "exercise_renders" USING btree ("fair_tag") WHERE "exercise_renders"."status" <> 'pending';--> statement-breakpoint
CREATE INDEX "exercise_renders_fair_key_idx" ON "exercise_renders" USING btree ("fair_key","fair_tag") WHERE "exercise_renders"."status" in ('pending', 'rendering');--> statement-breakpoint
CREATE INDEX "exercise_renders_video_idx" ON "exercise_renders" USING btree ("video_guid") WHERE "exercise_renders"."video_guid" is not null;--> statement-breakpoint
CREATE INDEX "render_events_render_idx" ON "render_events" USING btree ("render_id","id");--> statement-breakpoint
CREATE INDEX "render_events_at_idx" ON "render_events" USING btree ("at");--> statement-breakpoint
CREATE INDEX "webhook_events_unapplied_idx" ON "webhook_events" USING btree ("next_try_at") WHERE "webhook_events"."applied_at" is null;--> statement-breakpoint
CREATE INDEX "webhook_events_video_idx" ON "webhook_events" USING btree ("video_guid");--> statement-breakpoint
CREATE INDEX "webhook_events_received_idx" ON "webhook_events" USING btree ("received_at");