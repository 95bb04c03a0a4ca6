import type { Role } from '../domain/roles.ts';
import type { Executor } from './client.ts';
import { auditLog } from './schema/index.ts';

/** Who acts; `org` is null for those who belong to none. */
export interface Actor {
  sub: string;
  role: Role;
  org: string | null;
}

/** What is written down, and of which thing: a programme, a session, a render or a webhook endpoint. */
export type AuditAction =
  | 'program.publish'
  | 'program.archive'
  | 'program.assign'
  | 'program.unassign'
  | 'session.publish'
  | 'session.archive'
  | 'render.retry'
  | 'render.cancel'
  | 'webhook-endpoint.create'
  | 'webhook-endpoint.change'
  | 'webhook-endpoint.delete'
  | 'webhook-endpoint.rotate-secret'
  | 'webhook-endpoint.replay';

/** Writes down who did what, in the transaction that does it: neither is there without the other. */
export async function audit(
  tx: Executor,
  { sub: actor, role, org: orgId }: Actor,
  action: AuditAction,
  subject: string,
  detail: Record<string, unknown> = {},
): Promise<void> {
  await tx.insert(auditLog).values({ actor, role, orgId, action, subject, detail });
}
