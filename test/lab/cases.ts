/** Everything the laboratory can run, for `npm run lab`. */

/** One experiment. Its module runs when it is imported, and reads its options with `readOptions`. */
export interface Case {
  readonly name: string
  /** One line: the measure or the task. */
  readonly what: string
  /** `build`: starts the built gateway. `recordings`: reads recordings that are not part of the project. */
  readonly needs: 'build' | 'recordings' | null
  run(): Promise<unknown>
}

const one = (name: string, needs: Case['needs'], run: Case['run'], what: string): Case => ({ name, what, needs, run })

// prettier-ignore
export const CASES: readonly Case[] = [
  one('bench', 'build', () => import('./bench.ts'),
    'what a call costs on every path, beside node:http, Express and @x402/express; --check compares a budget'),
  one('model', null, () => import('../money/model/main.ts'),
    'drives the money path through many random runs with crashes and faults'),
  one('chaos', 'build', () => import('./chaos.ts'),
    'kills the real process at random under paid load; with --postgres two that share a journal'),
  one('soak', 'build', () => import('./soak.ts'),
    'works at 70 % of the capacity while something breaks every minute, then compares every payment'),
  one('venues', null, () => import('../venues/main.ts'),
    'buys every product that rests on sources while scripted sources fail in each of 33 ways'),
  one('fuzz', null, () => import('./fuzz.ts'),
    'feeds every parser with a million inputs, guided by the branches they take'),
  one('fuzz-ledgers', null, () => import('./fuzz-ledgers.ts'),
    'writes 10,000 sets of trades as ledgers of 26 formats and compares each audit with their worth'),
  one('scale', null, () => import('./scale.ts'),
    'simulates how full gateways, journal and chain are at a given rate, and what is full first'),
  one('loop', 'build', () => import('./bench/loop.ts'),
    'how long an unpaid 402 waits while audits and checks of bars run'),
  one('unpaid', 'build', () => import('./bench/unpaid-work.ts'),
    'how long it waits beside the requests that cost most and pay nothing'),
  one('connections', 'build', () => import('./bench/connections.ts'),
    'how long it, buyers and uploads on slow lines wait beside connections that attack'),
  one('signer', null, () => import('./bench/signer.ts'),
    'what signing in another process costs'),
  one('journal', null, () => import('./bench/journal.ts'),
    'what group commits save, what a payment costs in a large journal, and the bytes it takes'),
  one('bursts', 'build', () => import('./bench/bursts.ts'),
    'how long buyers wait on a chain with a block a second'),
  one('chain', 'build', () => import('./bench/chain.ts'),
    'what a paid call costs on a chain with a block a second, beside a settler without a chain'),
  one('catalog', 'build', () => import('./bench/catalog.ts'),
    'start, rebuild, memory and calls with 1,000 products, beside 10'),
  one('workers', 'build', () => import('./bench/workers.ts'),
    'what a call costs in one process and in two workers'),
  one('snapshots', 'build', () => import('./bench/snapshots.ts'),
    'what calls cost with a short and with a long history'),
  one('heap', 'build', () => import('./bench/heap.ts'),
    'whether the gateway keeps memory over 300,000 mixed calls'),
  one('symbols', null, () => import('./bench/symbols.ts'),
    'what collecting the symbols costs: back-fill, a day, memory'),
  one('storage', null, () => import('./bench/storage.ts'),
    'bytes that each table takes per row, and per symbol and year'),
  one('first-day', null, () => import('./bench/first-day.ts'),
    'the first load of the POTUS feeds'),
  one('potus', 'recordings', () => import('./bench/potus.ts'),
    'the POTUS feeds: replay, entities, pages'),
  one('regime', 'recordings', () => import('./bench/regime.ts'),
    'the regime model on recorded bars'),
  one('products', 'recordings', () => import('./bench/products.ts'),
    'cost, bar quality and audit, each figure against its limit'),
  one('datasets', 'recordings', () => import('./bench/datasets.ts'),
    'what funding rates and the directory read'),
  one('claims', 'recordings', () => import('./claims.ts'),
    'runs the benches of the methodology page and says which claims have changed; --check compares'),
  one('calibrate', null, () => import('./calibrate.ts'),
    'fits the impact of orders to the order books that a gateway has kept'),
  one('polls', null, () => import('./polls.ts'),
    'prints every stored poll of the news sources as a recording for REPLAY_DIR'),
  one('pictures', null, () => import('./pictures.ts'),
    'takes a picture of every page, on a phone and a desktop, light and dark'),
  one('icons', null, () => import('./icons.ts'),
    'renders the preview card and the icons from the logo'),
  one('lighthouse', null, () => import('./lighthouse.ts'),
    'scores the start page, the price page and a report; fetches Lighthouse on its first run'),
  one('outside', null, () => import('./outside.ts'),
    'buys with clients of others and lints the OpenAPI document; fetches them on its first run'),
  one('verify-preflight', null, () => import('./verify-preflight.ts'),
    'verifies a signed preflight: [BASE_URL [ANSWER.json]]'),
]
