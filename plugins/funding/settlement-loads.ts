/**
 * Reads the settled rates of the venues, of the symbols of the settings and of those with extreme rates: first those of the
 * last months, window by window, then each new one. A window is stored together with how far it reaches, so that a load that is
 * interrupted goes on without a hole.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Job, PluginContext } from 'tollgate/plugin'
import { type Pauses, RequestError, requestJson } from '../lib/feeds/requests.ts'
import { readCurrentRates } from './current-rates.ts'
import { extremeSymbols, noteExtremes } from './extreme-symbols.ts'
import type { FundingRate, RateSource, VenueName } from './funding-rate.ts'
import type { Settings } from './funding-settings.ts'
import { pauseAfter } from './online-rates.ts'
import { type HeldContract, pruneSettlements, readContracts, storeSettlements } from './settlement-store.ts'
import { representatives } from './spreads.ts'
import { VENUES } from './venues/funding-venues.ts'
import { PayloadError, type Venue } from './venues/funding-venue.ts'

const EVERY_SECONDS = 60
const DAY = 86_400
/** The longest interval of any venue, and by how much it may be late: a longer window of a traded contract has a settlement. */
const LONGEST_SECONDS = 26 * 3600
/** A venue may list a settlement this much later. Windows that end before are complete. */
const LATE_SECONDS = 2 * 3600
/** A contract is read this often whatever its interval: it may have moved to a shorter one, and what is held grows by it. */
const RECHECK_SECONDS = 50 * 60
/** Statuses with which a venue refuses one contract. */
const UNKNOWN = [400, 404]
/** Requests to one venue in one run, so that the other contracts get their turn. */
const MOST_REQUESTS = 30

/** Creates the job. `pauses` are those of the polls: a venue that refuses them is not asked for its past. */
export function settlementJobs(
  context: PluginContext,
  settings: Settings,
  source: RateSource & { readonly pauses: Pauses<VenueName> },
): readonly Job[] {
  const { db } = context
  const { pauses } = source
  const now = (): number => Math.floor(context.now().getTime() / 1000)
  const pauseMs = settings.history_pause_ms ?? 0
  const load: Load = { context, settings, pauses, now }

  /** The symbols whose settled rates are kept. */
  async function wantedSymbols(): Promise<ReadonlySet<string>> {
    const { rates } = await readCurrentRates(source, now())
    await noteExtremes(db, rates, { now: now(), most: settings.extreme_symbols })
    return new Set([...(settings.history_symbols ?? []), ...(await extremeSymbols(db))])
  }

  /** True if a settlement may have come that is not stored. */
  const isDue = (rate: FundingRate, known: HeldContract | null): boolean =>
    known === null ||
    known.error !== null ||
    known.reached < lastSettlement(rate, now()) ||
    now() >= known.updated_at + RECHECK_SECONDS

  async function readVenue(venue: Venue, rates: readonly FundingRate[], signal: AbortSignal): Promise<void> {
    let requests = 0
    // One window of each contract after the other, so that all of them are held early.
    for (let open = rates; open.length > 0;) {
      const more: FundingRate[] = []
      for (const [rate, known] of await inTurn(venue, open)) {
        if (signal.aborted || requests >= MOST_REQUESTS || pauses.isPaused(venue.name)) return
        if (!isDue(rate, known)) continue
        if (await readWindow(load, { venue, rate, known }, signal)) more.push(rate)
        requests += 1
        if (pauseMs > 0) await sleep(pauseMs, undefined, { signal }).catch(() => {})
      }
      open = more
    }
  }

  /** Contracts with what is held of them. Those read longest ago come first: one that fails must keep no other waiting. */
  async function inTurn({ name }: Venue, rates: readonly FundingRate[]) {
    const held = await readContracts(db, name)
    return rates
      .map((rate) => [rate, held.get(rate.instrument) ?? null] as const)
      .toSorted(([, a], [, b]) => (a?.updated_at ?? 0) - (b?.updated_at ?? 0))
  }

  const isEnabled = (venue: VenueName): boolean => settings.venues?.[venue]?.enabled ?? true
  return [
    {
      name: 'settlements',
      everySeconds: EVERY_SECONDS,
      run: async ({ signal }) => {
        await pauses.load()
        const wanted = await wantedSymbols()
        const states = (await source.at(now())).filter(({ venue }) => isEnabled(venue))
        // One contract of each symbol: the one that stands for the venue in spreads.
        const contracts = states.map(({ venue, poll }) => [venue, representatives(poll?.rates ?? [], wanted)] as const)
        await Promise.all(contracts.map(([venue, rates]) => readVenue(VENUES[venue], rates, signal)))
        await pruneSettlements(db, now() - settings.keep_settled_days * DAY, signal)
      },
    },
  ]
}

/** What every window is read with. */
interface Load {
  readonly context: PluginContext
  readonly settings: Settings
  readonly pauses: Pauses<VenueName>
  readonly now: () => number
}

/** A contract, and what is held of it. */
interface Contract {
  readonly venue: Venue
  readonly rate: FundingRate
  readonly known: HeldContract | null
}

/** Reads one window of a contract. Returns true if there is more to read at once. */
async function readWindow(
  { context: { db, log, fetch }, settings, pauses, now }: Load,
  { venue, rate: { instrument, symbol }, known }: Contract,
  signal: AbortSignal,
): Promise<boolean> {
  const at = now()
  const from = known?.reached ?? at - settings.history_days * DAY
  const to = Math.min(at, from + venue.settled.windowSeconds)
  const contract: HeldContract = {
    venue: venue.name,
    instrument,
    symbol,
    held_from: known?.held_from ?? from,
    reached: from,
    updated_at: at,
    error: null,
  }
  try {
    const { path, body } = venue.settled.request(instrument, from, to)
    const url = (settings.venues?.[venue.name]?.url ?? venue.url).replace(/\/$/, '')
    const payload = await requestJson({ url: url + path, label: path, body, fetch, signal })
    const found = venue.settled.parse(payload).filter(({ time }) => time >= from && time <= to)
    const isBegun = contract.held_from < from
    if (found.length === 0 && isBegun && to - from > LONGEST_SECONDS)
      throw new PayloadError(`${path} answered without a settlement of ${Math.round((to - from) / 3600)} hours`)
    const rows = found.map((row) => ({ venue: venue.name, instrument, symbol, ...row }))
    const complete = Math.min(to, at - LATE_SECONDS)
    const reached = Math.max(from, complete, ...found.map(({ time }) => time))
    // Before the first settlement, the contract was not listed, or its venue does not keep what is so old.
    const heldFrom = isBegun || found.length > 0 ? contract.held_from : reached
    await storeSettlements(db, rows, { ...contract, held_from: heldFrom, reached })
    return to < at
  } catch (error) {
    if (signal.aborted) throw error
    const isOurs = error instanceof RequestError || error instanceof PayloadError
    log.warn({ venue: venue.name, instrument, err: error }, 'could not read settled funding rates')
    // A venue that answers is not left alone for what it answers about one contract.
    const isOfContract = error instanceof RequestError && UNKNOWN.includes(error.status)
    if (!isOfContract && !(error instanceof PayloadError)) await pauses.pause(venue.name, pauseAfter(error))
    const reason = isOurs ? error.message : 'answered something that cannot be read'
    await storeSettlements(db, [], { ...contract, error: reason })
    return false
  }
}

/** The last settlement of a contract up to `at`, by its interval and its next settlement; epoch seconds. */
function lastSettlement({ nextFunding, intervalHours }: FundingRate, at: number): number {
  const period = intervalHours * 3600
  const next = nextFunding ?? 0
  return next + Math.floor((at - next) / period) * period
}
