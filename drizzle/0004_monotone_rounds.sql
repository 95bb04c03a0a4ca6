DROP INDEX "exercise_renders_claimed_tag_idx";--> statement-breakpoint
ALTER TABLE "exercise_renders" ADD COLUMN "enqueued_round" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "exercise_renders" ADD COLUMN "served_key" text;--> statement-breakpoint
ALTER TABLE "exercise_renders" ADD COLUMN "served_round" bigint;--> statement-breakpoint
CREATE INDEX "exercise_renders_enqueued_idx" ON "exercise_renders" USING btree ("enqueued_round");--> statement-breakpoint
CREATE INDEX "exercise_renders_served_idx" ON "exercise_renders" USING btree ("served_round") WHERE "exercise_renders"."served_round" is not null;--> statement-breakpoint
UPDATE "exercise_renders" SET "served_key" = "fair_key", "served_round" = "fair_tag" WHERE "status" <> 'pending' AND "claimed_at" IS NOT NULL AND "fair_tag" > 0;
