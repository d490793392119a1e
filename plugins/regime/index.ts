/** The regime plugin: one snapshot a minute, sold as current value and as history, and free with a day's delay. */
import { type Ask, type Call, definePlugin, type Facts, InvalidInput, Unavailable } from 'tollgate/plugin'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import type {
  MarketStatus,
  RegimeHistory,
  RegimeHistoryItem,
  RegimeHistoryQuery,
  Snapshot as RegimeSnapshot,
} from '../../schemas/types.d.ts'
import { formatSeconds, requireEpochSeconds } from '../lib/time/timestamps.ts'
import { createClassifier, type Classifier, type Market } from './classifier.ts'
import { barsSupported, HORIZON_MINUTES } from './features.ts'
import { createGrader } from './label-grades.ts'
import { methodology } from './regime-methodology.ts'
import { MODEL } from './regime-model.ts'
import { migrations, newestSnapshots, openSnapshots, type Snapshot, type Snapshots } from './snapshots.ts'

/** Data older than this are not sold as current. */
const STALE_SECONDS = 300
/** Columns of a snapshot in the history. */
const SOLD = ['as_of', 'volatile', 'confidence', 'position_scalar'] as const
type Sold = Pick<Snapshot, (typeof SOLD)[number]>
const GRADED_DAYS = 90
const FACTS_SECONDS = 60

const seconds = (moment: Date): number => Math.floor(moment.getTime() / 1000)

export default definePlugin({
  name: 'regime',
  migrations,
  settings: {
    type: 'object',
    additionalProperties: false,
    required: ['symbol', 'since'],
    properties: {
      symbol: { type: 'string', description: 'The market to classify.' },
      since: { type: 'string', format: 'date-time', description: 'First snapshot kept; earlier bars warm the model.' },
    },
  },
  setup(context) {
    const { symbol } = context.settings as { symbol: string }
    // A recording begins on its own first day.
    const { dataMode } = dataSettings(context)
    const since = dataMode === 'replay' ? 0 : seconds(new Date(String(context.settings['since'])))
    let snapshots: Snapshots | null = null
    let classifier: Classifier | null = null
    let grader: { readonly of: Snapshots; readonly grade: ReturnType<typeof createGrader> } | null = null
    let graded: { at: number; grades: Promise<Facts> } | null = null

    const statusOf = (ask: Ask): Promise<MarketStatus> =>
      ask('getMarketStatus', { params: {}, query: { symbol }, body: undefined })
    const open = async (ask: Ask): Promise<Snapshots> =>
      (snapshots ??= await openSnapshots(context.db, symbol, (await statusOf(ask)).origin))
    const isFilling = (): boolean => classifier !== null && classifier.done() < 1
    const waiting = (): Unavailable => {
      const done = classifier ? `${Math.floor(100 * classifier.done())}% of` : 'Nothing of'
      return new Unavailable(`${done} the history is computed. Nothing was charged; ask again in a few seconds.`, 10)
    }

    /** Serves both current and sample: the catalog decides how old `asOf` is. */
    async function latest({ ask, asOf, operation }: Call): Promise<RegimeSnapshot> {
      const at = seconds(asOf)
      const found = await (await open(ask)).latest(at)
      if (!found) throw waiting()
      const age = at - found.as_of
      if (age > STALE_SECONDS && isFilling()) throw waiting()
      if (age > STALE_SECONDS)
        throw new Unavailable(`The last bar is ${age} seconds old, more than ${STALE_SECONDS}. Nothing was charged.`)
      return {
        ...itemOf(found, symbol),
        forecast_vol: found.forecast_vol,
        boundary_vol: found.boundary_vol,
        realized_vol_1h: found.realized_vol_1h,
        horizon_minutes: HORIZON_MINUTES,
        since: formatSeconds(found.since),
        annualisation: 365,
        bars_used: found.bars_used,
        data_age_seconds: age,
        model: MODEL,
        data_mode: dataMode,
        ...(operation.maxFreshnessSeconds > 0 ? { delayed_by_seconds: operation.maxFreshnessSeconds } : {}),
      }
    }

    async function history({ ask, asOf, input }: Call<{ query: RegimeHistoryQuery }>): Promise<RegimeHistory> {
      const { start, end, limit } = input.query
      const at = seconds(asOf)
      const until = end === undefined ? at + 1 : requireEpochSeconds(end, 'end')
      const from = start === undefined ? Math.max(0, until - limit * 60) : requireEpochSeconds(start, 'start')
      if (from > until) throw new InvalidInput('is after end; swap them', ['query', 'start'])
      const range = { from, to: until, asOf: at, limit: limit + 1 }
      const found = await (await open(ask)).between(SOLD, range)
      const page = found.slice(0, limit)
      return {
        symbol,
        start: formatSeconds(from),
        end: formatSeconds(until),
        count: page.length,
        next_start: found.length > limit ? formatSeconds(found[limit]!.as_of) : null,
        data_mode: dataMode,
        snapshots: page.map((snapshot) => itemOf(snapshot, symbol)),
      }
    }

    async function classify(ask: Ask, signal: AbortSignal): Promise<void> {
      if (!classifier) {
        const status = await statusOf(ask)
        const market = marketOf(status)
        if (!status.ready || !market) return
        classifier = createClassifier(context, await open(ask), market, since)
      }
      await classifier.run(ask, signal)
    }

    async function grades(): Promise<Facts> {
      const kept = snapshots ?? grader?.of ?? (await newestSnapshots(context.db, symbol))
      const { count, first, last } = (await kept?.extent()) ?? { count: 0, first: null, last: null }
      const extent = {
        snapshots: count,
        first: first === null ? null : formatSeconds(first),
        last: last === null ? null : formatSeconds(last),
        window_days: GRADED_DAYS,
        model: MODEL,
      }
      if (!kept || isFilling()) return extent
      if (grader?.of !== kept) grader = { of: kept, grade: createGrader(kept, GRADED_DAYS) }
      const { snapshots: _, ...figures } = await grader.grade(seconds(context.now()))
      const known = Object.entries(figures).map(([name, value]) => [name, Number.isNaN(value) ? null : round(value)])
      return { ...extent, ...(Object.fromEntries(known) as Record<string, number | null>) }
    }

    return {
      handlers: {
        getRegimeSample: latest,
        getRegimeCurrent: latest,
        getRegimeHistory: history,
        getRegimeMethod: methodology,
      },
      // Every ten seconds, so that a snapshot follows soon after its minute. A run without new bars is cheap.
      jobs: [{ name: 'classify', everySeconds: 10, run: ({ ask, signal }) => classify(ask, signal) }],
      facts() {
        const now = performance.now()
        if (!graded || isFilling() || now - graded.at >= FACTS_SECONDS * 1000) graded = { at: now, grades: grades() }
        return graded.grades
      },
      stop: async () => classifier?.keep(),
    }
  },
})

/** The finest bars that the model can read. */
function marketOf({ symbol, series }: MarketStatus): Market | null {
  const fitting = series
    .filter(({ interval_seconds, first }) => first !== null && barsSupported(interval_seconds / 60))
    .toSorted((a, b) => a.interval_seconds - b.interval_seconds)[0]
  return fitting ? { symbol, interval: fitting.interval_seconds, first: fitting.first as number } : null
}

function itemOf(snapshot: Sold, symbol: string): RegimeHistoryItem {
  return {
    as_of: formatSeconds(snapshot.as_of),
    symbol,
    regime: snapshot.volatile === 1 ? 'VOLATILE' : 'STABLE',
    confidence: snapshot.confidence,
    position_scalar: snapshot.position_scalar,
  }
}

const round = (value: number): number => Math.round(value * 1e4) / 1e4
