/** The sources: a data file with a version, and what an operator changes of it. */
import { readFileSync } from 'node:fs'
import type { Kind } from '../item.ts'

export interface Source {
  readonly id: string
  readonly name: string
  readonly url: string
  /** Name and version of the parser: bytes are parsed again when it changes. */
  readonly parser: string
  /** Whose words these are. Two sources of one publisher do not corroborate each other. */
  readonly publisher: string
  readonly affiliation: 'official' | 'third_party'
  /** What its word weighs: the principal and official instruments most. */
  readonly role: 'principal' | 'mirror' | 'agency'
  readonly tier: 'breaking' | 'record' | 'archive'
  readonly format: string
  readonly licence: string
  readonly attribution: string
  readonly enabled: boolean
  /** False where no payload of it was ever seen by us. */
  readonly verified: boolean
  readonly pollSeconds: number
  /** Older than this without news of any kind, it counts as late. */
  readonly lateSeconds: number
  /** Kind of its items where the parser cannot tell. */
  readonly kind: Kind
  /** Fewer items than this are a broken feed. */
  readonly minItems: number
  /** The feed holds everything recent, so what is missing was taken back. */
  readonly retracts: boolean
  readonly maxBytes: number
  readonly userAgent: string | null
  /** Query parameter that gets past a shared cache. */
  readonly cacheBuster: string | null
  /** Asks caches for a fresh copy. */
  readonly noCache: boolean
  /** Clock time that stands for a whole day, "12:00:00". */
  readonly dayStamp: string
  /** New York clock times at which news come: polled every two minutes around them, else every `pollSeconds`. */
  readonly slots: readonly string[]
  /** Polled at this pace outside New York business hours. */
  readonly nightSeconds: number
}

/** What an operator may change of a source. */
export interface SourceSettings {
  readonly enabled?: boolean
  readonly url?: string
  readonly poll_seconds?: number
}

interface Entry {
  readonly [field: string]: unknown
}

const file = JSON.parse(readFileSync(new URL('../data/sources.json', import.meta.url), 'utf8')) as {
  readonly version: string
  readonly defaults: Entry
  readonly sources: readonly Entry[]
}

export const SOURCES_VERSION = file.version

/** All sources with the operator's changes. Throws RangeError for a change to a source that is not there. */
export function readSources(changes: Readonly<Record<string, SourceSettings>> = {}): Source[] {
  const sources = file.sources.map((entry) => sourceOf({ ...file.defaults, ...entry }, changes[String(entry['id'])]))
  const unknown = Object.keys(changes).find((id) => !sources.some((source) => source.id === id))
  if (unknown !== undefined)
    throw new RangeError(`no source ${unknown}; there are ${sources.map(({ id }) => id).join(', ')}`)
  return sources
}

function sourceOf(entry: Entry, changes: SourceSettings = {}): Source {
  const camel = Object.entries(entry).map(([name, value]) => [
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ])
  const source = Object.fromEntries(camel) as Source
  return {
    ...source,
    enabled: changes.enabled ?? source.enabled,
    url: changes.url ?? source.url,
    pollSeconds: changes.poll_seconds ?? source.pollSeconds,
  }
}
