/** Loads recorded listings of REPLAY_DIR once, through the same parsers as online. */
import type { PluginContext } from 'tollgate/plugin'
import type { Settings, SourceKind } from './directory-settings.ts'
import type { DirectoryStore } from './directory-store.ts'
import type { Page } from './listing.ts'
import { listOf, rowOf } from '../lib/feeds/payloads.ts'
import { canonicalAddress } from './public-addresses.ts'
import { readCard } from './sources/agent-cards.ts'
import { readBazaar } from './sources/bazaar.ts'
import { readRegistration } from './sources/erc8004.ts'
import { readRegistry } from './sources/mcp-registry.ts'
import { readOrigin } from './sources/well-known-x402.ts'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import { findRecordings, readRecordedText } from '../lib/feeds/recordings.ts'

interface Recording {
  readonly name: string
  readonly source: string
  readonly rank: number
  readonly payload: unknown
  readonly read: Read
}

interface Sum {
  readonly at: number
  readonly rows: number
  readonly dropped: Record<string, number>
}

interface IngestedRecordings {
  readonly folder: string
  readonly setting: string
  /** Number of files. Another number means another recording. */
  readonly files: number
  readonly shift_seconds: number
  readonly sources: readonly string[]
}

/** Later than any recorded time. */
const LATEST = Date.UTC(9999, 0, 1) / 1000
const YEAR = 365 * 86_400

/**
 * Loads the recordings unless an earlier start already has, and returns how far their times were moved. `auto` puts the
 * newest recorded time at the first start. A recording counts as known from its own newest time; without times, from the
 * day in its file name, or else from the newest time of all recordings.
 */
export async function ingestRecordings(
  context: PluginContext,
  store: DirectoryStore,
  { sources }: Pick<Settings, 'sources'>,
): Promise<IngestedRecordings> {
  const { log } = context
  const { replayDir: folder = '', replayShift } = dataSettings(context)
  const { setting } = replayShift
  const earlier = await store.noted<IngestedRecordings>('replay')
  const kinds = new Set(sources.filter(({ enabled }) => enabled).map(({ kind }) => kind))
  const readers = READERS.filter(({ onlyFor }) => onlyFor === undefined || kinds.has(onlyFor))
  const found = await recordingsOf(folder, readers, log)
  const files = found.length
  if (earlier?.folder === folder && earlier.setting === setting && earlier.files === files) return earlier
  await store.clear()
  const recordings = found.map((recording) => ({ ...recording, taken: takenAt(recording) }))
  const newest = Math.max(0, ...recordings.map(({ taken }) => taken ?? 0))
  const shift_seconds = files === 0 ? 0 : (replayShift.seconds ?? Math.floor(context.now().getTime() / 1000) - newest)
  const sums = new Map<string, Sum>()
  for (const { source, rank, payload, read, taken } of recordings.toSorted(
    (a, b) => (a.taken ?? newest) - (b.taken ?? newest),
  )) {
    const page = read(payload, taken ?? newest)
    if (!page) continue
    const at = (taken ?? newest) + shift_seconds
    const moved = page.listings.map((listing) => ({
      ...listing,
      updated: listing.updated === null ? null : listing.updated + shift_seconds,
    }))
    await store.savePage({ source, rank, listings: moved, sweep: at, at, visitAt: null })
    const { rows, dropped }: Sum = sums.get(source) ?? { at, rows: 0, dropped: {} }
    for (const [reason, count] of Object.entries(page.dropped)) dropped[reason] = (dropped[reason] ?? 0) + count
    sums.set(source, { at, rows: rows + page.rows, dropped })
  }
  for (const [source, { at, ...sum }] of sums) await store.note(source, at, { ...sum, error: null })
  const replayed: IngestedRecordings = { folder, setting, files, shift_seconds, sources: [...sums.keys()] }
  await store.setNote('replay', replayed)
  log.info({ recordings: files, shift_seconds }, 'recorded listings read')
  return replayed
}

/** When a recording was taken: its newest time. Ignores times more than a year after the median, which are errors. */
function takenAt({ name, payload, read }: Recording): number | null {
  const updated = (read(payload, LATEST)?.listings ?? []).map((listing) => listing.updated)
  const times = updated.filter((time) => time !== null).toSorted((a, b) => a - b)
  const middle = times[times.length >> 1]
  const newest = middle === undefined ? undefined : times.findLast((time) => time <= middle + YEAR)
  const day = Date.parse(/\d{4}-\d{2}-\d{2}/.exec(name)?.[0] ?? '')
  return newest ?? (Number.isNaN(day) ? null : day / 1000)
}

/** Reads the files. A file that fails is logged and skipped. */
async function recordingsOf(
  folder: string,
  readers: readonly Reader[],
  log: PluginContext['log'],
): Promise<Recording[]> {
  const recordings: Recording[] = []
  for (const { name, path } of await findRecordings(folder, (name) => name.endsWith('.json')))
    for (const [rank, { pattern, sourceOf, read }] of readers.entries()) {
      const match = pattern.exec(name)
      if (!match) continue
      try {
        const payload = JSON.parse(await readRecordedText(path)) as unknown
        recordings.push({ name, source: sourceOf(match), rank: rank + 1, payload, read })
      } catch (error) {
        log.warn({ file: name, err: error }, 'could not read a recorded listing')
      }
    }
  return recordings.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

type Read = (payload: unknown, now: number) => Page | null

export interface Reader {
  /** Matches the file name. */
  readonly pattern: RegExp
  readonly sourceOf: (match: RegExpExecArray) => string
  readonly read: Read
  /** Used only if a source of this kind is enabled. */
  readonly onlyFor?: SourceKind
}

/** Readers in order of precedence. */
export const READERS: readonly Reader[] = [
  { pattern: /^bazaar[_-]([a-z0-9]+).*\.json$/, sourceOf: (match) => match[1]!, read: readBazaar },
  { pattern: /^x402_discovery_(v\d)\w*\.json$/, sourceOf: (match) => `x402_${match[1]!}`, read: readBazaar },
  { pattern: /^mcp_registry.*\.json$/, sourceOf: () => 'mcp_registry', read: readRegistry },
  { pattern: /^well-known_x402.*\.json$/, sourceOf: () => 'origins', read: ownDocument },
  { pattern: /^(a2a_|agent-card).*\.json$/, sourceOf: () => 'agent_cards', read: (payload) => readCard(payload, null) },
  {
    pattern: /^erc8004_.*\.json$/,
    sourceOf: () => 'erc8004',
    read: (payload) => readRegistration(payload),
    onlyFor: 'erc8004',
  },
]

/** Reads a document that an origin serves about itself. Its first address determines the origin. */
function ownDocument(payload: unknown): Page | null {
  const [first] = listOf(rowOf(payload)['resources'])
  const address = canonicalAddress(first)
  return readOrigin(payload, address.reason === null ? new URL(address.url).origin : '')
}
