ALTER TABLE "exercise_renders" DROP CONSTRAINT "exercise_renders_hash_hex";--> statement-breakpoint
DROP INDEX "exercise_renders_dispatch_idx";--> statement-breakpoint
ALTER TABLE "exercise_renders" ADD CONSTRAINT "exercise_renders_hash_hex" CHECK (length("exercise_renders"."recipe_hash") = 64 and "exercise_renders"."recipe_hash" ~ '^[0-9a-f]+$');--> statement-breakpoint
ALTER TABLE "exercise_renders" SET (fillfactor = 50);