ALTER TABLE "webhook_endpoints" ADD COLUMN "secret_rotations" timestamp with time zone[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
UPDATE "webhook_endpoints" SET "secret_rotations" = ARRAY["secret_rotated_at"] WHERE "secret_rotated_at" IS NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_endpoints" DROP COLUMN "secret_rotated_at";
