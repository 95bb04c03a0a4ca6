ALTER TABLE "exercise_renders" ADD COLUMN "mirrored_priority" integer;--> statement-breakpoint
ALTER TABLE "render_events" ADD COLUMN "lease_token" uuid;