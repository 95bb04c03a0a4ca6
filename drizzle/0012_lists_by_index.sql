DROP INDEX "exercise_sources_newest_idx";--> statement-breakpoint
DROP INDEX "notifications_recipient_idx";--> statement-breakpoint
CREATE INDEX "sessions_alone_newest_idx" ON "sessions" USING btree ("id") WHERE "sessions"."program_id" is null;--> statement-breakpoint
CREATE INDEX "exercise_sources_newest_idx" ON "exercise_sources" USING btree ("exercise_id","created_at");--> statement-breakpoint
CREATE INDEX "notifications_recipient_idx" ON "notifications" USING btree ("recipient","created_at","id");