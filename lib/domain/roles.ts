import { z } from 'zod';

export const role = z.enum(['superadmin', 'manager', 'specialist', 'patient', 'ops']);
export type Role = z.infer<typeof role>;

/** What a role may do inside its own organisation; a superadmin may do it in every one. */
export type Permission = 'content.write' | 'programs.write' | 'clinic.read' | 'platform.write' | 'ops.read';

const GRANTS: Record<Role, readonly Permission[]> = {
  superadmin: ['content.write', 'programs.write', 'clinic.read', 'platform.write', 'ops.read'],
  manager: ['content.write', 'programs.write', 'clinic.read'],
  specialist: ['programs.write', 'clinic.read'],
  patient: [],
  ops: ['ops.read'],
};

export const may = (who: Role, permission: Permission): boolean => GRANTS[who].includes(permission);
