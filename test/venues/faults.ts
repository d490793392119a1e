/** The ways in which a scripted venue fails. Tests switch them on and off while the venue runs. */

/** Every way to fail, with what the client of the venue sees. */
export const FAULTS = {
  // The connection.
  reset: 'the connection is reset before an answer',
  silent: 'the request is read and never answered',
  slow_drip: 'one byte every second',
  tls_failure: 'a TLS alert instead of an answer',
  truncated: 'the connection ends in the middle of the body',
  // The answer as a whole.
  rate_limited: '429 with Retry-After',
  banned: '418 with Retry-After, as Binance bans an address that ignores 429',
  restricted: '451: not available in your region',
  forbidden: '403 with a page of the firewall',
  server_error: '500',
  unavailable: '503 with Retry-After',
  maintenance: '200 with an HTML page that announces maintenance',
  wrong_type: 'the right body, declared as text/html',
  redirect: '302 to another host',
  gzip_unasked: 'a gzip body though none was accepted',
  bad_gzip: 'a body declared as gzip that is not',
  truncated_json: 'half of the body, with a Content-Length that fits it',
  huge_body: 'a body above every limit',
  // The rows.
  empty: 'no rows',
  out_of_order: 'rows in a random order',
  duplicates: 'rows twice, the second time with another value',
  null_rows: 'a row whose values are null',
  delisted: 'the answer for a symbol that does not exist',
  // The data.
  unfinished: 'the last closed minute is still half of what it will be',
  gap: 'no data of the minutes [from, to)',
  price_factor: 'every price multiplied by a factor, ×1.05 by default',
  false_wick: 'each tenth minute has a high or a low that nobody traded at',
  zero_price: 'one price is zero',
  impossible_bar: 'a low above the close, or a crossed book',
  frozen: 'nothing newer than the moment at which the fault began',
  flat: 'new minutes repeat the last price, with plausible volumes',
  clock_behind: 'the clock of the venue is behind by some seconds',
  clock_ahead: 'the clock of the venue is ahead by some seconds',
} as const

/** A request with this header meets no fault. */
export const UNDISTURBED = 'x-undisturbed'

export type FaultName = keyof typeof FAULTS

/** Where a fault applies. A field that is absent means everywhere. */
export interface FaultScope {
  readonly venue?: string
  /** Symbol of the market, such as BTC-USD, not the venue's own name of it. */
  readonly symbol?: string
  /** Route of the venue, such as `candles` or `book`. */
  readonly route?: string
}

export interface FaultOptions extends FaultScope {
  /** How many requests fail. Without it, all do until the fault is switched off. */
  readonly times?: number
  /** Of `price_factor`; 1.05 by default. */
  readonly factor?: number
  /** Of Retry-After and of the clocks; 30 by default. */
  readonly seconds?: number
  /** Of `gap`, epoch seconds: the first minute that is missing. Default: the minute in which the fault began. */
  readonly from?: number
  /** Of `gap`, epoch seconds: the first minute that is there again. Default: none, as long as the fault goes on. */
  readonly to?: number
}

export interface Fault extends FaultOptions {
  readonly name: FaultName
  /** When it was switched on, epoch milliseconds. */
  readonly since: number
}

export interface Faults {
  /** Switches a fault on. Returns the function that switches it off. */
  start(name: FaultName, options?: FaultOptions): () => void
  /** Switches every fault off. */
  clear(): void
  /**
   * The faults of one request. Each of them counts as used once. A request for all symbols (null) gets the faults of each
   * symbol too.
   */
  take(request: { readonly venue: string; readonly symbol: string | null; readonly route: string }): readonly Fault[]
}

/** Creates a switchboard without faults. `now` is the clock of the venues, in milliseconds. */
export function createFaults(now: () => number): Faults {
  const on = new Map<Fault, { left: number }>()
  return {
    start(name, options = {}) {
      const fault: Fault = { ...options, name, since: now() }
      on.set(fault, { left: options.times ?? Infinity })
      return () => void on.delete(fault)
    },
    clear: () => on.clear(),
    take({ venue, symbol, route }) {
      const found: Fault[] = []
      for (const [fault, state] of on) {
        if (fault.venue !== undefined && fault.venue !== venue) continue
        if (fault.symbol !== undefined && symbol !== null && fault.symbol !== symbol) continue
        if (fault.route !== undefined && fault.route !== route) continue
        found.push(fault)
        state.left -= 1
        if (state.left <= 0) on.delete(fault)
      }
      return found
    },
  }
}
