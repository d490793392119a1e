/** What every operation of the feed works with, and the fields that every answer begins with. */
import type { Call, Database } from 'tollgate/plugin'
import { formatMilliseconds } from '../../lib/time/timestamps.ts'
import type { Source } from '../sources/source.ts'
import type { EventReader } from '../store/event-reader.ts'
import type { RecordContext } from './event-record.ts'
import type { FeedFigures } from './feed-figures.ts'

export interface FeedParts {
  readonly db: Database
  readonly reader: EventReader
  readonly context: RecordContext
  readonly figures: FeedFigures
  readonly sources: readonly Source[]
  /** Product id in the catalog. */
  readonly product: string
  /** Least coverage with which an answer without events is sold. */
  readonly emptyCoverage: number
  readonly now: () => Date
  /** Throws Unavailable while the sample or the recording is still being loaded. */
  readonly assertReady: () => void
}

const SCHEMA = 'potus/1' as const

/** The first fields of an answer. Throws Unavailable while there is no data yet. */
export function envelope(
  { assertReady, context }: Pick<FeedParts, 'assertReady' | 'context'>,
  call: Pick<Call, 'asOf' | 'operation' | 'catalog' | 'access'>,
) {
  assertReady()
  return {
    schema: SCHEMA,
    data_mode: context.dataMode,
    as_of: formatMilliseconds(call.asOf.getTime()),
    max_freshness_seconds: delaySeconds(call),
  }
}

/** The same fields as JSON, up to the comma before the next one. */
export function envelopeText(...parts: Parameters<typeof envelope>): string {
  const { schema, data_mode, as_of, max_freshness_seconds } = envelope(...parts)
  return `{"schema":"${schema}","data_mode":"${data_mode}","as_of":"${as_of}","max_freshness_seconds":${max_freshness_seconds}`
}

/** Minimum age of what a caller may see, in seconds: the plan's for a token, otherwise the operation's. */
export function delaySeconds({ operation, catalog, access }: Pick<Call, 'operation' | 'catalog' | 'access'>): number {
  const planName = access.kind === 'token' ? access.plan : null
  const plan = catalog.plans.plans.find((one) => one.plan === planName)
  return plan ? plan.maxFreshnessSeconds : operation.maxFreshnessSeconds
}
