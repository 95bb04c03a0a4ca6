import type { PipelineConfig } from '../config/pipeline.ts';
import type { Database } from '../db/client.ts';
import type { VideoStatus } from '../media/contract.ts';
import type { Inventory } from '../media/fleet.ts';
import type { ReconcileAction, ReconcileReport } from './reconcile-report.ts';
import type { TranscodeDeps } from './transcode.ts';

export interface ReconcileDeps extends TranscodeDeps {
  config: TranscodeDeps['config'] & Pick<PipelineConfig, 'RECONCILE_MAX_REBAKES' | 'RECONCILE_MAX_DELETIONS'>;
  database: Database;
  media: Inventory & { videoStatus(guid: string, signal?: AbortSignal): Promise<VideoStatus> };
}

export interface ReconcileOptions {
  /** Ask everybody and change nothing. */
  dryRun: boolean;
  /** How old a video without a render must be to be deleted. */
  graceMs: number;
  /** Deletes up to so many, whatever the configuration and their share of the library say: for who has looked at them. */
  maxDeletions?: number;
  /** Aborting it ends the run soon; the report then is not complete. */
  signal?: AbortSignal;
  /** Told of everything done, or with `dryRun` planned. */
  onAction?: (action: ReconcileAction) => void;
  /** Videos asked for at a time, at least 10; default 500. */
  videosPerPage?: number;
}

/** What the passes share. */
export interface Run {
  deps: ReconcileDeps;
  options: ReconcileOptions & { signal: AbortSignal };
  report: ReconcileReport;
  /** Notes one thing done. */
  done(action: ReconcileAction): void;
}
