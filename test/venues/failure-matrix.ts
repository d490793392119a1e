/** Buys every product while a failure goes on and until it has passed, and says what the buyer got. */
import type { TestChain } from '../support/chain.ts'
import {
  type BoughtProduct,
  marksOf,
  PROBE_PLACE,
  PRODUCTS,
  type SourceGroup,
  type TruthParts,
} from './bought-products.ts'
import type { FaultName, FaultOptions } from './faults.ts'
import type { NewsItem } from './feeds/scripted-news.ts'
import { LISTINGS, listingVenue } from './listings/service-listings.ts'
import { openUndisturbedTwin } from './undisturbed-twin.ts'
import { type Bought, openVenueGateway, type VenueGateway } from './venue-gateway.ts'
import { openVenueKit, SPOT_VENUES, type VenueKit } from './venue-kit.ts'

/** Which sources fail: the one that is read first, or all of a group. */
export type FailureScope = 'one' | 'all'

export interface Failure {
  readonly name: FaultName
  readonly scope: FailureScope
  readonly options?: FaultOptions
  /** Groups in which it can happen. */
  readonly groups: readonly SourceGroup[]
}

/** What a buyer got, from best to worst. The last four must not happen. */
export type Verdict =
  /** The truth, at its price. */
  | 'fresh'
  /** Less than the truth, which the answer says. */
  | 'marked'
  /** No answer and no charge. */
  | 'refused'
  | 'wrong and unmarked'
  | 'charged for nothing'
  | 'charged another amount'
  | 'needs a restart'

export interface Outcome {
  readonly verdict: Verdict
  /** The error code of a refusal. */
  readonly code: string
  /** What is wrong, or the marks. */
  readonly details: readonly string[]
}

export interface Cell {
  readonly failure: Failure
  readonly product: string
  /** While the failure goes on: soon after it began, and before it ended. */
  readonly early: Outcome
  readonly late: Outcome
  /** Seconds on the clock of the data from the end of the failure to a fresh answer; null if there was none. */
  readonly recovery: number | null
}

const SPOT: readonly SourceGroup[] = ['spot']
const PRICED: readonly SourceGroup[] = ['spot', 'perpetual']
const EVERY: readonly SourceGroup[] = ['spot', 'perpetual', 'feeds', 'listings']

/** In which groups each way to fail can happen. What every venue agrees on is the market, whatever it is. */
const GROUPS: Readonly<
  Record<FaultName, { readonly one: readonly SourceGroup[]; readonly all: readonly SourceGroup[] }>
> = {
  reset: { one: EVERY, all: EVERY },
  silent: { one: EVERY, all: EVERY },
  slow_drip: { one: EVERY, all: EVERY },
  tls_failure: { one: EVERY, all: EVERY },
  truncated: { one: EVERY, all: EVERY },
  rate_limited: { one: EVERY, all: EVERY },
  banned: { one: EVERY, all: EVERY },
  restricted: { one: EVERY, all: EVERY },
  forbidden: { one: EVERY, all: EVERY },
  server_error: { one: EVERY, all: EVERY },
  unavailable: { one: EVERY, all: EVERY },
  maintenance: { one: EVERY, all: EVERY },
  wrong_type: { one: EVERY, all: EVERY },
  redirect: { one: EVERY, all: EVERY },
  gzip_unasked: { one: EVERY, all: EVERY },
  bad_gzip: { one: EVERY, all: EVERY },
  truncated_json: { one: EVERY, all: EVERY },
  huge_body: { one: EVERY, all: EVERY },
  empty: { one: EVERY, all: EVERY },
  out_of_order: { one: EVERY, all: EVERY },
  duplicates: { one: EVERY, all: EVERY },
  null_rows: { one: EVERY, all: EVERY },
  delisted: { one: PRICED, all: SPOT },
  unfinished: { one: SPOT, all: [] },
  gap: { one: SPOT, all: SPOT },
  price_factor: { one: PRICED, all: [] },
  false_wick: { one: SPOT, all: [] },
  zero_price: { one: SPOT, all: SPOT },
  impossible_bar: { one: SPOT, all: SPOT },
  // A page that a source serves for ever cannot be told from a quiet source, unless another source has the news.
  frozen: { one: PRICED, all: PRICED },
  flat: { one: SPOT, all: SPOT },
  clock_behind: { one: PRICED, all: PRICED },
  clock_ahead: { one: PRICED, all: PRICED },
}

/** Every failure, of one source and of all. */
export const FAILURES: readonly Failure[] = (Object.keys(GROUPS) as FaultName[]).flatMap((name) =>
  (['one', 'all'] as const).flatMap((scope): Failure[] => {
    const groups = GROUPS[name][scope]
    return groups.length === 0 ? [] : [{ name, scope, groups }]
  }),
)

/** The source of each group that is read first. */
const FIRST: Readonly<Record<SourceGroup, string>> = {
  spot: 'coinbase',
  perpetual: 'binance-futures',
  feeds: 'truth-mirror',
  listings: 'cdp-listing',
}
const ALL: Readonly<Record<SourceGroup, readonly string[]>> = {
  spot: SPOT_VENUES,
  perpetual: ['binance-futures', 'bybit', 'okx', 'hyperliquid', 'dydx', 'kraken-futures', 'gate', 'bitmex'],
  feeds: ['white-house', 'federal-register', 'truth-mirror', 'truth-archive', 'federal-reserve', 'state'],
  listings: LISTINGS.map(listingVenue),
}

/** A Monday afternoon in Europe, a morning in Washington. */
const START = Date.UTC(2026, 2, 2, 12, 0, 30)
/** How long a failure goes on, and when is bought, in seconds on the clock of the data. */
const FAILURE_SECONDS = 20 * 60
const EARLY_SECONDS = 150
const STEP_SECONDS = 30
/** A feed has a news item this long after it was published. */
const SEEN_SECONDS = 180
/** When a recovery is looked for, in seconds after the failure. */
const LOOKS = [30, 60, 120, 180, 240, 300, 420, 600, 900, 1200, 1800, 2700, 3600, 5400]
/**
 * Real time that the runs of jobs have to give up on sources that are silent or slow, in milliseconds: several requests
 * may wait in turn, each for its own timeout.
 */
const SILENCE_MS = 120_000

export interface MatrixOptions {
  readonly products?: readonly string[]
  readonly failures?: readonly Failure[]
  /** When recoveries are looked for; after the last one a product needs a restart. */
  readonly looks?: readonly number[]
  readonly failureSeconds?: number
  readonly onCell?: (cell: Cell) => void
  readonly onFailure?: (failure: Failure, milliseconds: number) => void
}

/** A gateway with its sources, on which failures are tried one after the other. */
export class FailureMatrix {
  readonly #chain: TestChain
  /** What the live feed lacked when it was bought last. */
  #live: readonly string[] = []
  /** When the last product was bought, on the clock of `performance`. */
  #boughtAt = 0
  #parts: { kit: VenueKit; shop: VenueGateway; twin: Awaited<ReturnType<typeof openUndisturbedTwin>> } | null = null

  constructor(chain: TestChain) {
    this.#chain = chain
  }

  /** Buys without a failure. Every product must be fresh. */
  async undisturbed(names?: readonly string[]): Promise<readonly (Outcome & { readonly product: string })[]> {
    const { shop } = await this.#open()
    const probes = this.#publish()
    await shop.jobs.advance(SEEN_SECONDS + 120, STEP_SECONDS)
    const found: (Outcome & { product: string })[] = []
    for (const product of PRODUCTS.filter(({ name }) => names?.includes(name) ?? true))
      found.push({ product: product.name, ...(await this.#buy(product, probes)) })
    return found
  }

  async run({
    products,
    failures = FAILURES,
    looks = LOOKS,
    failureSeconds = FAILURE_SECONDS,
    onCell,
    onFailure,
  }: MatrixOptions = {}): Promise<Cell[]> {
    const cells: Cell[] = []
    for (const failure of failures) {
      const begun = performance.now()
      const bought = PRODUCTS.filter(
        ({ name, group }) => failure.groups.includes(group) && (products?.includes(name) ?? true),
      )
      const found = await this.#try(failure, bought, looks, failureSeconds)
      for (const cell of found) onCell?.(cell)
      cells.push(...found)
      onFailure?.(failure, performance.now() - begun)
      if (found.some(({ recovery }) => recovery === null)) await this.close()
    }
    return cells
  }

  async close(): Promise<void> {
    const parts = this.#parts
    this.#parts = null
    await parts?.twin.stop()
    await parts?.shop.close()
    await parts?.kit.close()
  }

  async #open() {
    if (this.#parts) return this.#parts
    const kit = await openVenueKit({ start: START, newsSince: START - 12 * 86_400_000 })
    const shop = await openVenueGateway(this.#chain, { kit })
    const twin = await openUndisturbedTwin(kit, shop.jobs, shop.catalogDir)
    this.#parts = { kit, shop, twin }
    // The history, and a first round of every source.
    await shop.jobs.advance(240, STEP_SECONDS)
    return this.#parts
  }

  async #try(
    failure: Failure,
    products: readonly BoughtProduct[],
    looks: readonly number[],
    failureSeconds: number,
  ): Promise<Cell[]> {
    const { kit, shop } = await this.#open()
    const stops = failure.groups.flatMap((group) =>
      (failure.scope === 'one' ? [FIRST[group]] : ALL[group]).map((venue) =>
        kit.faults.start(failure.name, { ...this.#symbolOf(failure), ...failure.options, venue }),
      ),
    )
    await shop.jobs.advance(60, STEP_SECONDS)
    const probes = this.#publish()
    await shop.jobs.advance(EARLY_SECONDS - 60, STEP_SECONDS)
    const early = await this.#buyAll(products, [])
    await shop.jobs.advance(failureSeconds - EARLY_SECONDS, STEP_SECONDS)
    const late = await this.#buyAll(products, probes)
    stops.forEach((stop) => stop())
    if (failure.name === 'silent' || failure.name === 'slow_drip') await shop.jobs.untilNoneRuns(SILENCE_MS)
    const recovered = new Map<string, number>()
    let passed = 0
    const after: NewsItem[] = [...probes]
    for (const look of looks) {
      const missing = products.filter(({ name }) => !recovered.has(name))
      if (missing.length === 0) break
      await shop.jobs.advance(look - passed, STEP_SECONDS)
      passed = look
      await this.#forgetFreshness()
      for (const product of missing)
        if ((await this.#buy(product, after)).verdict === 'fresh') recovered.set(product.name, look)
    }
    return products.map(({ name }) => ({
      failure,
      product: name,
      early: early.get(name)!,
      late: late.get(name)!,
      recovery: recovered.get(name) ?? null,
    }))
  }

  #symbolOf({ name }: Failure): FaultOptions {
    return name === 'delisted' ? { symbol: 'BTC-USD' } : {}
  }

  /** Publishes one item of the White House and one post, and returns them. */
  #publish(): NewsItem[] {
    const { kit } = this.#parts!
    const at = kit.clock.now()
    const text = `A statement for the test of ${new Date(at).toISOString()} about the harbour of ${at % 9973} boats in ${PROBE_PLACE.name}.`
    return (['white_house', 'posts'] as const).map((desk) => {
      const item = { at, title: `Statement ${at}`, text: `${desk === 'posts' ? 'Post' : 'Release'}: ${text}` }
      return { ...item, desk, key: kit.news.publish(desk, item), section: 'releases' as const }
    })
  }

  async #buyAll(products: readonly BoughtProduct[], probes: readonly NewsItem[]): Promise<Map<string, Outcome>> {
    await this.#forgetFreshness()
    const found = new Map<string, Outcome>()
    for (const product of products) found.set(product.name, await this.#buy(product, probes))
    return found
  }

  /** The gateway asks a product how fresh its data are once a second of real time, however far a test moves its clock. */
  async #forgetFreshness(): Promise<void> {
    const wait = this.#boughtAt + 1_050 - performance.now()
    if (wait > 0) await new Promise((wake) => setTimeout(wake, wait))
  }

  async #buy(product: BoughtProduct, probes: readonly NewsItem[]): Promise<Outcome> {
    const { kit, shop, twin } = this.#parts!
    const path = typeof product.path === 'string' ? product.path : product.path(kit.clock.now())
    const bought = await shop.buy(path, product.request)
    this.#boughtAt = performance.now()
    const outcome = await judge(product, bought, { kit, twin, probes, live: this.#live })
    if (product.name === 'live')
      this.#live =
        outcome.verdict === 'refused'
          ? probes.map(() => 'refused')
          : outcome.details.filter((one) => one.startsWith('no '))
    return outcome
  }
}

async function judge(product: BoughtProduct, bought: Bought, parts: TruthParts): Promise<Outcome> {
  const { status, code, body, charged, price } = bought
  if (status !== 200) {
    const details = [JSON.stringify(body['message'] ?? body['error'] ?? null)]
    return { verdict: charged === 0n ? 'refused' : 'charged for nothing', code: `${status} ${code}`, details }
  }
  if (charged !== price) return { verdict: 'charged another amount', code, details: [`${charged} instead of ${price}`] }
  const faults = await product.faultsOf(body, parts)
  if (faults.length === 0) return { verdict: 'fresh', code, details: [] }
  const isEmpty = faults.some((fault) => /^no (?:rates|event|window|snapshot|entity|feed|record)$/.test(fault))
  const marks = marksOf(body)
  if (marks.length > 0 && !isEmpty) return { verdict: 'marked', code, details: [...faults, ...marks] }
  return { verdict: isEmpty ? 'charged for nothing' : 'wrong and unmarked', code, details: faults }
}

/** The worst of a cell. */
export function verdictOf({ early, late, recovery }: Cell): Verdict {
  const order: readonly Verdict[] = [
    'fresh',
    'refused',
    'marked',
    'wrong and unmarked',
    'charged another amount',
    'charged for nothing',
  ]
  if (recovery === null) return 'needs a restart'
  return order.indexOf(early.verdict) > order.indexOf(late.verdict) ? early.verdict : late.verdict
}

/** True for a cell that a buyer may get. */
export const isGood = (cell: Cell): boolean => ['fresh', 'refused', 'marked'].includes(verdictOf(cell))
