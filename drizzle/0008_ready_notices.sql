DROP INDEX "notifications_recipient_idx";--> statement-breakpoint
ALTER TABLE "assignments" ADD COLUMN "notified_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "assignments_to_tell_idx" ON "assignments" USING btree ("program_id") WHERE "assignments"."notify_when_ready" and "assignments"."notified_at" is null;--> statement-breakpoint
CREATE INDEX "notifications_recipient_idx" ON "notifications" USING btree ("recipient","created_at" DESC NULLS LAST,"id" DESC NULLS LAST);