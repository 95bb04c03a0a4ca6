import { timestamp, uuid } from 'drizzle-orm/pg-core';
import { v7 as uuidv7 } from 'uuid';

/** A time-ordered id, made by the application, so that any Postgres from version 15 on will do. */
export const id = () =>
  uuid()
    .primaryKey()
    .$defaultFn(() => uuidv7());

export const time = () => timestamp({ withTimezone: true, mode: 'date' });
export const createdAt = () => time().notNull().defaultNow();
export const updatedAt = () =>
  time()
    .notNull()
    .defaultNow()
    .$onUpdate(() => new Date());
