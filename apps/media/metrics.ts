import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { type HttpObservation, httpMetrics } from '../../lib/metrics.ts';

export interface MediaMetrics {
  registry: Registry;
  http: (observed: HttpObservation) => void;
  bakes: Counter<'outcome' | 'code'>;
  bakeSeconds: Histogram;
  segments: Counter<'from'>;
  uploads: Counter<'kind' | 'outcome'>;
}

interface Watched {
  busy: () => number;
  slots: number;
  cacheBytes: () => number;
}

export function mediaMetrics(registry: Registry, watched: Watched): MediaMetrics {
  const registers = [registry];
  const gauge = (name: string, help: string, value: () => number) =>
    new Gauge({
      ...{ name, help, registers },
      collect() {
        this.set(value());
      },
    });
  gauge('bakehouse_media_slots', 'Bakes that may run at once.', () => watched.slots);
  gauge('bakehouse_media_busy', 'Bakes under way.', watched.busy);
  gauge('bakehouse_media_cache_bytes', 'Bytes in the disk cache.', watched.cacheBytes);
  return {
    registry,
    http: httpMetrics(registry).observe,
    bakes: new Counter({
      name: 'bakehouse_media_bakes_total',
      help: 'Bakes ended, by outcome (done, resumed, failed, aborted) and error code.',
      labelNames: ['outcome', 'code'],
      registers,
    }),
    bakeSeconds: new Histogram({
      name: 'bakehouse_media_bake_seconds',
      help: 'Time of a bake that was done.',
      buckets: [0.5, 1, 2, 5, 10, 20, 40, 80, 160, 320, 640, 1280],
      registers,
    }),
    segments: new Counter({
      name: 'bakehouse_media_segments_total',
      help: 'Distinct segments of bakes that were done, encoded or taken from the cache.',
      labelNames: ['from'],
      registers,
    }),
    uploads: new Counter({
      name: 'bakehouse_media_uploads_total',
      help: 'Assets sent up, by kind and outcome (stored, refused, failed).',
      labelNames: ['kind', 'outcome'],
      registers,
    }),
  };
}
