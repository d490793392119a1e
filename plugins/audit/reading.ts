/** How a file was read. A report shows it above the verdict, so that a reader can tell whether the audit understood the file. */
import type { AuditReading } from '../../schemas/types.d.ts'

/** What the reading itself finds out; the instruments are added when their contract sizes are known. */
export type Reading = Omit<AuditReading, 'instruments' | 'bars'>
export type ReadColumn = Reading['columns'][number]
export type Assumption = Reading['assumptions'][number]
export type SkippedRows = Reading['skipped'][number]
