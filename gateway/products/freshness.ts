/**
 * Decides whether the data behind an operation are fresh enough to be sold. The catalog says what is required
 * (`fresh`), and the plugin reports what it has (`freshness`). A report is read at most once a second, and one at a time,
 * for each operation and input, so the check costs a paid call no more than a look into a map, and a 402 nothing. What is
 * said without a call (402, /health, alarms) is about an ordinary call, and about the inputs that the product lists.
 */
import { LRUCache } from 'lru-cache'
import { andThen, type Awaitable, isPromise } from '../awaitable.ts'
import { ServiceError } from '../errors.ts'
import { stricterOf, writtenFreshData } from '../catalog/fresh-data.ts'
import type { FreshData, Operation, OperationId } from '../plugin/catalog.ts'
import type { Freshness, Input, Logger } from '../plugin/plugin.ts'
import { hasUnreadBody } from '../plugin/unread-body.ts'
import type { FreshnessNotice, Missing } from '../x402/challenge.ts'
import { type Caller, GATEWAY_CLIENT, type Meter, type TimeoutOptions, withTimeout } from '../workers/timeout.ts'
import { type NamedInput, WatchedInputs } from './watched-inputs.ts'

/**
 * How fresh the data of an operation are, for an ordinary call or an input that is watched, or those of all operations
 * that a plan opens.
 */
export interface FreshnessState extends FreshnessNotice {
  readonly operation: OperationId
  readonly route: string
  /** The request with the input that is watched: `GET /v1/bars?symbol=ETH-USD`. Absent for an ordinary call. */
  readonly request?: string
  readonly required: FreshData
  /** Null if the plugin has not reported yet, could not, or has nothing to report. */
  readonly found: Freshness | null
  /** Why nothing is sold, in a sentence. Null unless it is stale. */
  readonly reason: string | null
}

/** Looks at the freshness of what is sold, at most once a second. */
export interface FreshnessLook {
  /** The last known state, at once. Looks again, without waiting, if that is more than a second old. */
  notice(): FreshnessNotice
  /** The state of each operation, which is at most a second old. */
  state(): Awaitable<readonly FreshnessState[]>
}

/** Decides whether the answers of one operation may be sold. Its state covers every input that is watched. */
export interface FreshnessGate extends FreshnessLook {
  /** @param url address of a call: if it names an input that is watched, the notice is about that */
  notice(url?: string): FreshnessNotice
  /** The state of the data as of now, without the delay of the operation. */
  readonly present: FreshnessLook
  /**
   * Throws ServiceError if an answer may not be sold: `data_stale`, or the plugin's own refusal of the call.
   * @param delaySeconds minimum age of the data that the caller gets
   */
  assertFresh(input: Input, delaySeconds: number): Awaitable<void>
}

export type ReadFreshness = (input: Input, asOf: Date) => Awaitable<Freshness | null>

export interface FreshnessGateParts {
  readonly operation: Operation & { readonly fresh: FreshData }
  readonly read: ReadFreshness
  /** The input of an ordinary call: that of a call without input, or else of the example. Null if neither is valid. */
  readonly usual: () => Input | null
  /** Lists the inputs that are looked at as the usual one is. Without it, there are none. */
  readonly watched?: () => Awaitable<readonly NamedInput[]>
  /** Counts the time that the product loses because the machine is busy with others. */
  readonly lost?: Meter
  /** The clock of the data. */
  readonly now: () => Date
  readonly log: Logger
}

const REREAD_MS = 1_000
/** How long a report may take, in milliseconds. */
export const FRESHNESS_MS = 5_000
const RETRY_SECONDS = 30
const MAX_REPORTS = 256

const FRESH: FreshnessNotice = Object.freeze({ status: 'fresh', missing: [] })
const UNKNOWN: FreshnessNotice = Object.freeze({ status: 'unknown', missing: [] })
const STALE = new Map<string, FreshnessNotice>()

/** The notice of what is missing. Equal notices are the same object, because a 402 is written once for each. */
function noticeOf(missing: readonly Missing[]): FreshnessNotice {
  if (missing.length === 0) return FRESH
  const key = missing.join()
  const notice = STALE.get(key) ?? Object.freeze({ status: 'stale', missing })
  STALE.set(key, notice)
  return notice
}

/** The report of the plugin, undefined if it failed, or the error with which it refused the call. */
type Outcome = { readonly found: Freshness | null | undefined } | { readonly refusal: ServiceError }

interface Report {
  /** When the plugin was asked, in milliseconds on the clock of the process. */
  readonly at: number
  /** A promise while the report is made. */
  outcome: Awaitable<Outcome>
}

/** The gate of an operation that has `fresh`. */
export class OperationGate implements FreshnessGate {
  readonly present: FreshnessLook
  readonly #parts: FreshnessGateParts
  readonly #usual: FreshnessLook
  readonly #watched: WatchedInputs<FreshnessLook> | null
  readonly #reports = new LRUCache<string, Report>({ max: MAX_REPORTS })
  #input: Input | null | undefined

  constructor(parts: FreshnessGateParts) {
    const { watched, lost, log } = parts
    const { fresh, maxFreshnessSeconds: delaySeconds } = parts.operation
    this.#parts = parts
    this.#usual = this.#lookAt(delaySeconds, fresh)
    this.present = delaySeconds === 0 ? this.#usual : this.#lookAt(0, fresh)
    const list = (): Awaitable<readonly NamedInput[]> => {
      const listed = watched?.() ?? []
      return isPromise(listed) ? inTime(listed, lost) : listed
    }
    this.#watched = watched ? new WatchedInputs(list, (named) => this.#lookAt(delaySeconds, fresh, named), log) : null
  }

  /** Looks at the state of the data as of now, of which somebody demands more than the operation. */
  demanding(fresh: FreshData): FreshnessLook {
    return this.#lookAt(0, stricterOf(this.#parts.operation.fresh, fresh))
  }

  /** @param named the input to look at; the usual one if absent */
  #lookAt(delaySeconds: number, required: FreshData, named?: NamedInput): FreshnessLook {
    const { operation, usual } = this.#parts
    return new InputLook({ ...operation, fresh: required }, named?.request, () => {
      const input = named?.input ?? (this.#input ??= usual())
      return (
        input && andThen(this.#report(input, delaySeconds), (outcome) => this.#judge(outcome, delaySeconds, required))
      )
    })
  }

  notice(url?: string): FreshnessNotice {
    const named = url === undefined ? null : this.#watched?.namedBy(url)
    return (named ?? this.#usual).notice()
  }

  state(): Awaitable<readonly FreshnessState[]> {
    if (!this.#watched) return this.#usual.state()
    return andThen(this.#watched.all(), (watched) => statesOf([this.#usual, ...watched]))
  }

  assertFresh(input: Input, delaySeconds: number): Awaitable<void> {
    return andThen(this.#report(input, delaySeconds), (outcome) => {
      const { error } = this.#judge(outcome, delaySeconds, this.#parts.operation.fresh)
      if (error) throw error
    })
  }

  /** Asks the plugin, unless it was asked the same within the last second or is still to report. Never rejects. */
  #report(input: Input, delaySeconds: number): Awaitable<Outcome> {
    const key = this.#keyOf(input, delaySeconds)
    const known = key === null ? undefined : this.#reports.get(key)
    const at = performance.now()
    if (known && (isPromise(known.outcome) || at - known.at < REREAD_MS)) return known.outcome
    const outcome = this.#ask(input, delaySeconds)
    if (key === null) return outcome
    const report: Report = { at, outcome }
    this.#reports.set(key, report)
    if (isPromise(outcome)) void outcome.then((ended) => (report.outcome = ended))
    return outcome
  }

  /** The key of a report. Null for a body that is large or not JSON: it would cost more to compare than to ask. */
  #keyOf(input: Input, delaySeconds: number): string | null {
    const { bodyMedia } = this.#parts.operation
    const hasJson = bodyMedia.every((media) => media.endsWith('json'))
    return hasJson && !hasUnreadBody(input) ? `${delaySeconds} ${JSON.stringify(input)}` : null
  }

  #ask(input: Input, delaySeconds: number): Awaitable<Outcome> {
    const { read, now, lost } = this.#parts
    try {
      const found = read(input, new Date(now().getTime() - delaySeconds * 1000))
      if (!isPromise(found)) return { found: checked(found) }
      return inTime(found, lost)
        .then((report) => ({ found: checked(report) }))
        .catch((error: unknown) => this.#failure(error))
    } catch (error) {
      return this.#failure(error)
    }
  }

  #failure(error: unknown): Outcome {
    const { operation, log } = this.#parts
    if (error instanceof ServiceError) return { refusal: error }
    log.warn({ operation: operation.id, err: error }, 'a product could not report how fresh its data are')
    return { found: undefined }
  }

  #judge(outcome: Outcome, delaySeconds: number, required: FreshData): Judgement {
    if ('refusal' in outcome)
      return { missing: REPORT, found: null, error: outcome.refusal, reason: outcome.refusal.message }
    const { found } = outcome
    const asOf = new Date(this.#parts.now().getTime() - delaySeconds * 1000)
    const missing = found === null ? NOTHING : found === undefined ? REPORT : missingOf(required, found, asOf)
    if (missing.length === 0) return { missing, found: found ?? null, error: null, reason: null }
    const reason = missing.map((name) => sentenceOf(name, required, found ?? null, asOf)).join(' ')
    return { missing, found: found ?? null, error: staleError(required, missing, found ?? null, reason), reason }
  }
}

interface Judgement {
  readonly missing: readonly Missing[]
  readonly found: Freshness | null
  readonly error: ServiceError | null
  /** Why nothing is sold, in a sentence. */
  readonly reason: string | null
}

/** The states of all that is looked at. */
export function statesOf(looks: readonly FreshnessLook[]): Awaitable<readonly FreshnessState[]> {
  const states = looks.map((look) => look.state())
  return states.some(isPromise)
    ? Promise.all(states.map(async (state) => state)).then((all) => all.flat())
    : (states as (readonly FreshnessState[])[]).flat()
}

/** Looks at what calls with one input would use. */
class InputLook implements FreshnessLook {
  readonly #operation: FreshnessGateParts['operation']
  readonly #request: string | undefined
  readonly #judge: () => Awaitable<Judgement> | null
  #notice: FreshnessNotice = UNKNOWN
  #state: readonly FreshnessState[]
  #lookedAt = -Infinity
  #looking: Promise<readonly FreshnessState[]> | null = null

  /**
   * @param request names the input, unless it is that of an ordinary call
   * @param judge returns null if no ordinary call is known
   */
  constructor(
    operation: FreshnessGateParts['operation'],
    request: string | undefined,
    judge: () => Awaitable<Judgement> | null,
  ) {
    this.#operation = operation
    this.#request = request
    this.#judge = judge
    this.#state = [this.#stateOf(null, null)]
  }

  notice(): FreshnessNotice {
    if (performance.now() - this.#lookedAt >= REREAD_MS) void this.state()
    return this.#notice
  }

  state(): Awaitable<readonly FreshnessState[]> {
    if (performance.now() - this.#lookedAt < REREAD_MS) return this.#looking ?? this.#state
    this.#lookedAt = performance.now()
    const judged = this.#judge()
    if (judged === null) return this.#state
    const looked = andThen(judged, (judgement) => this.#note(judgement))
    if (!isPromise(looked)) return looked
    const looking = looked.finally(() => {
      if (this.#looking === looking) this.#looking = null
    })
    this.#looking = looking
    return looking
  }

  #note({ missing, found, reason }: Judgement): readonly FreshnessState[] {
    const notice = noticeOf(missing)
    const isKnown = this.#notice === notice
    this.#notice = notice
    const [last] = this.#state
    if (!isKnown || last?.reason !== reason || !isSame(last.found, found)) this.#state = [this.#stateOf(found, reason)]
    return this.#state
  }

  #stateOf(found: Freshness | null, reason: string | null): FreshnessState {
    const { id, displayRoute, fresh } = this.#operation
    const request = this.#request === undefined ? {} : { request: this.#request }
    return { operation: id, route: displayRoute, ...request, ...this.#notice, required: fresh, found, reason }
  }
}

/** Returns the report. Throws TypeError for one that compares with nothing, such as a coverage of 0 / 0. */
function checked(report: Freshness | null): Freshness | null {
  if (report === null) return null
  const { newest, sources, coverage } = report
  const isValid = newest === null || (newest instanceof Date && !Number.isNaN(newest.getTime()))
  if (!isValid || Number.isNaN(sources) || Number.isNaN(coverage))
    throw new TypeError('the report of freshness has an invalid date or number')
  return report
}

const NOTHING: readonly Missing[] = Object.freeze([])
const REPORT: readonly Missing[] = Object.freeze(['report'])

/** Returns the requirements that a report does not meet. */
export function missingOf(required: FreshData, found: Freshness, asOf: Date): readonly Missing[] {
  const { newestSeconds, sources, coverage } = required
  const age = found.newest === null ? Infinity : (asOf.getTime() - found.newest.getTime()) / 1000
  return [
    // Nothing is sold while there are no data at all, even if no age is required.
    ...(age > (newestSeconds ?? Number.MAX_VALUE) ? (['newest'] as const) : []),
    ...(sources !== undefined && (found.sources ?? Infinity) < sources ? (['sources'] as const) : []),
    ...(coverage !== undefined && found.coverage < coverage ? (['coverage'] as const) : []),
  ]
}

function staleError(
  required: FreshData,
  missing: readonly Missing[],
  found: Freshness | null,
  reason: string,
): ServiceError {
  return new ServiceError('data_stale', `${reason} Nothing was charged.`, {
    headers: { 'retry-after': String(RETRY_SECONDS) },
    fields: { missing, required: writtenFreshData(required), ...(found ? { freshness: writtenFreshness(found) } : {}) },
  })
}

function sentenceOf(name: Missing, required: FreshData, found: Freshness | null, asOf: Date): string {
  if (name === 'report' || !found) return 'The product could not say how fresh its data are.'
  if (name === 'sources') return `${found.sources} of at least ${required.sources} sources deliver data.`
  if (name === 'coverage')
    return `${Math.floor(found.coverage * 100)}% of the expected data are there, of at least ${(required.coverage ?? 0) * 100}%.`
  if (found.newest === null) return 'There are no data yet.'
  const age = Math.floor((asOf.getTime() - found.newest.getTime()) / 1000)
  return `The newest data are ${age} seconds old, more than ${required.newestSeconds}.`
}

/** A report in the form of answers. */
export function writtenFreshness({ newest, sources, coverage }: Freshness) {
  return { newest: newest?.toISOString() ?? null, sources, coverage }
}

function isSame(one: Freshness | null, other: Freshness | null): boolean {
  if (one === null || other === null) return one === other
  return (
    one.newest?.getTime() === other.newest?.getTime() &&
    one.sources === other.sources &&
    one.coverage === other.coverage
  )
}

/** Stands in for the caller of a report. Several calls may wait for it, so it does not end when one of them leaves. */
const NOBODY: Caller = {
  client: GATEWAY_CLIENT,
  hasLeft: false,
  signal: new AbortController().signal,
  onLeave: () => () => {},
}

/** Waits for a report. Throws Unavailable if the machine is too busy (ADR 77), and an Error if the product takes too long. */
async function inTime<Value>(work: Promise<Value>, lost: Meter | undefined): Promise<Value> {
  const timeout: TimeoutOptions = { timeoutSeconds: FRESHNESS_MS / 1000, queue: 'free', ...(lost ? { lost } : {}) }
  try {
    return await withTimeout(timeout, NOBODY, () => work)
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'product_timeout')
      throw new Error(`no report within ${FRESHNESS_MS} ms`, { cause: error })
    throw error
  }
}

/** Inputs of the gate of a plan. */
export interface PlanGateParts {
  /** The operation that sells the plan. */
  readonly operation: Pick<Operation, 'id' | 'displayRoute' | 'fresh'>
  /** Looks at the present state of each operation that the plan opens, with what the plan demands of it. */
  readonly opened: () => readonly FreshnessLook[]
}

/**
 * The gate of the purchase of a plan. A plan is sold while the data of all operations that it opens are fresh, as they and
 * the plan demand. Their delay does not matter, because a plan sells future data.
 */
export class PlanGate implements FreshnessGate {
  readonly #parts: PlanGateParts
  #looks: readonly FreshnessLook[] | null = null
  #last: { readonly of: readonly FreshnessNotice[]; readonly notice: FreshnessNotice } | null = null
  #state: { readonly of: readonly FreshnessState[]; readonly state: readonly FreshnessState[] } | null = null

  constructor(parts: PlanGateParts) {
    this.#parts = parts
  }

  get present(): FreshnessLook {
    return this
  }

  notice(): FreshnessNotice {
    const notices = this.#opened().map((look) => look.notice())
    if (this.#last && isEach(notices, this.#last.of)) return this.#last.notice
    const notice = noticeOfAll(notices)
    this.#last = { of: notices, notice }
    return notice
  }

  /** The state of the plan: what it demands, and the least that was found of it. */
  async state(): Promise<readonly FreshnessState[]> {
    const opened = await this.opened()
    if (this.#state && isEach(opened, this.#state.of)) return this.#state.state
    const { id, displayRoute, fresh } = this.#parts.operation
    const stale = staleOf(opened)
    const state: FreshnessState = {
      operation: id,
      route: displayRoute,
      ...noticeOfAll(opened),
      required: typeof fresh === 'object' && fresh !== null ? fresh : {},
      found: leastOf(opened.flatMap(({ found }) => found ?? [])),
      reason: stale.length === 0 ? null : sentencesOf(stale),
    }
    this.#state = { of: opened, state: [state] }
    return this.#state.state
  }

  /** The state of each operation that the plan opens. */
  async opened(): Promise<readonly FreshnessState[]> {
    return (await Promise.all(this.#opened().map(async (look) => look.state()))).flat()
  }

  async assertFresh(): Promise<void> {
    const stale = staleOf(await this.opened())
    if (stale.length === 0) return
    throw new ServiceError(
      'data_stale',
      `This plan is not sold while its data are not fresh. ${sentencesOf(stale)} Nothing was charged.`,
      {
        headers: { 'retry-after': String(RETRY_SECONDS) },
        fields: { missing: noticeOfAll(stale).missing },
      },
    )
  }

  /** An edition binds its operations before any of them is called. */
  #opened(): readonly FreshnessLook[] {
    return (this.#looks ??= this.#parts.opened())
  }
}

const isEach = (these: readonly unknown[], those: readonly unknown[]): boolean =>
  these.length === those.length && these.every((one, at) => one === those[at])

const staleOf = (states: readonly FreshnessState[]): readonly FreshnessState[] =>
  states.filter(({ status }) => status === 'stale')

/** Why a plan is not sold. Its operations often lack the same: "GET /v1/news, GET /v1/events: There are no data yet." */
function sentencesOf(stale: readonly FreshnessState[]): string {
  const reasons = new Set(stale.map(({ reason }) => reason))
  const routesOf = (why: string | null): string =>
    stale.flatMap(({ route, reason }) => (reason === why ? [route] : [])).join(', ')
  return [...reasons].map((reason) => `${routesOf(reason)}: ${reason}`).join(' ')
}

/** The requirements that a plan does not meet: all that one of its operations does not meet. */
function noticeOfAll(notices: readonly FreshnessNotice[]): FreshnessNotice {
  const notice = noticeOf([...new Set(notices.flatMap(({ missing }) => missing))])
  return notice === FRESH && notices.some(({ status }) => status === 'unknown') ? UNKNOWN : notice
}

/** The least fresh of several reports, part by part. Null without one. */
function leastOf(reports: readonly Freshness[]): Freshness | null {
  if (reports.length === 0) return null
  const newest = reports.map((report) => report.newest?.getTime() ?? null)
  const counted = reports.flatMap(({ sources }) => sources ?? [])
  return {
    newest: newest.some((at) => at === null) ? null : new Date(Math.min(...(newest as number[]))),
    sources: counted.length === 0 ? null : Math.min(...counted),
    coverage: Math.min(...reports.map(({ coverage }) => coverage)),
  }
}

const gates = new WeakMap<object, PlanGate>()

/** Keeps the gate of the plan that a call buys for as long as the call lasts. */
export function keepPlanGate(call: object, gate: PlanGate): void {
  gates.set(call, gate)
}

/** How fresh the data of a plan are, in the form of answers: what each route reports that its token opens. */
export async function freshnessOfPlan(call: object) {
  const opened = (await gates.get(call)?.opened()) ?? []
  return opened
    .flatMap(({ route, found }) => (found === null ? [] : [{ route, ...writtenFreshness(found) }]))
    .sort((one, other) => (one.route < other.route ? -1 : 1))
}
