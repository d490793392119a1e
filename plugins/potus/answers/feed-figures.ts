/** Figures about sources and events as of a moment: read from the database, or from memory (recent-figures.ts). */
import type { Database } from 'tollgate/plugin'
import type { Source } from '../sources/source.ts'
import { type HistoryRow, readHistories } from '../store/histories.ts'
import type { Span } from '../store/held-values.ts'
import { EVENT_COUNT } from '../store/tables.ts'
import { readWatched } from '../store/watch-spans.ts'
import { DAY, HOUR } from '../time-range.ts'
import { readSourceFigures, type SourceFigures } from './feed-health.ts'

/** Days that the usual number of events per day is taken from. */
export const BASELINE_DAYS = 30

/** How many events there were before a moment. */
export interface EventFigures {
  readonly hour: number
  readonly day: number
  /** Events of the last BASELINE_DAYS. */
  readonly month: number
  /** When the first of them became available, or null. */
  readonly firstOfMonth: number | null
  /** When the newest event of all became available, or null. */
  readonly newest: number | null
  /** Number of the newest live event; 0 if there is none. */
  readonly lastSeq: number
}

/** What a value is that is computed from the events that are visible at a moment. */
export interface Derivation {
  /** Two values of the same name are computed alike. */
  readonly name: string
  /** If it is computed from the last milliseconds only, how many; 0 if from all events. */
  readonly reach: number
}

export interface Derived extends Derivation {
  readonly asOf: number
}

/** The figures as of a moment, as far as they are in memory. */
export interface FiguresInMemory {
  ofSources(sources: readonly Source[]): readonly SourceFigures[]
  ofEvents(): EventFigures
  /** As `ofWatch`; null if `from` is too long ago. */
  ofWatch(sources: readonly Source[], from: number): readonly Span[] | null
  /** What `remember` computed before; undefined if it has to be computed. */
  recall(derivation: Derivation): { readonly value: unknown } | undefined
}

export interface FeedFigures {
  /** Answers at once what the other functions would; null if something has to be read before. */
  inMemory(asOf: number): FiguresInMemory | null
  /** The figures of each source, in order. As long as all of them are the same, so may the array be. */
  ofSources(sources: readonly Source[], asOf: number): Promise<readonly SourceFigures[]>
  ofEvents(asOf: number): Promise<EventFigures>
  /** The spans until a moment in which the sources were watched. Those that ended before `from` may be missing. */
  ofWatch(sources: readonly Source[], span: Span): Promise<readonly Span[]>
  /** How far the older items of the sources have been fetched by now. */
  ofHistories(): Promise<readonly HistoryRow[]>
  /** The value of `compute`, which may be one that was computed before if nothing that it is made of has changed since. */
  remember<Value>(derived: Derived, compute: () => Promise<Value>): Promise<Value>
}

/** Reads all figures from the database. */
export function createStoredFigures(db: Database): FeedFigures {
  return {
    inMemory: () => null,
    ofSources: (sources, asOf) =>
      readSourceFigures(
        db,
        sources.map(({ id }) => id),
        asOf,
      ),
    ofEvents: (asOf) => readEventFigures(db, asOf),
    ofWatch: (sources, span) => readWatched(db, sources, span),
    ofHistories: () => readHistories(db),
    remember: (_, compute) => compute(),
  }
}

/** Reads the figures in one statement, so that all of them are of the same moment. */
async function readEventFigures(db: Database, asOf: number): Promise<EventFigures> {
  const find = (what: string, where: string, values: readonly unknown[], name: string) =>
    db.raw(`(select ${what} from potus_events where ${where}) as ${name}`, values)
  const countOf = (reach: number, name: string) =>
    find('count(*)', 'available_at between ? and ?', [asOf - reach + 1, asOf], name)
  const newestLive = "available_at <= ? and ingest = 'live' order by available_at desc, seq desc limit 1"
  const row = (await db('potus_notes')
    .where({ name: EVENT_COUNT })
    .first(
      countOf(HOUR, 'hour'),
      countOf(DAY, 'day'),
      countOf(BASELINE_DAYS * DAY, 'month'),
      find('min(available_at)', 'available_at > ?', [asOf - BASELINE_DAYS * DAY], 'first_of_month'),
      find('max(available_at)', 'available_at <= ?', [asOf], 'newest'),
      find('seq', newestLive, [asOf], 'last_seq'),
    )) as Readonly<Record<string, number | null>> | undefined
  return {
    hour: row?.['hour'] ?? 0,
    day: row?.['day'] ?? 0,
    month: row?.['month'] ?? 0,
    firstOfMonth: row?.['first_of_month'] ?? null,
    newest: row?.['newest'] ?? null,
    lastSeq: row?.['last_seq'] ?? 0,
  }
}
