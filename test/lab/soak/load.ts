/** The load of a soak run: 402s, free calls, calls with the token of a plan, and purchases, always in the same mixture. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Buyers } from './buyers.ts'
import type { Client } from './client.ts'

/** Calls of each kind in a hundred. */
const MIXTURE = { '402': 45, free: 20, token: 15, paid: 13, mcp: 7 } as const
type Kind = keyof typeof MIXTURE

const KINDS = (Object.keys(MIXTURE) as Kind[]).flatMap((kind) => Array<Kind>(MIXTURE[kind]).fill(kind))
const FREE = ['/v1/x', '/v1/regime/sample', '/health', '/pricing.json', '/pricing'] as const
const UNPAID = ['/v1/regime/current', '/v1/regime/history?limit=10', '/v1/potus/live'] as const
const TICK_MS = 5
/** Beyond this number of calls under way, calls that are due are left out. */
const MAX_UNDER_WAY = 3_000

export class MixedLoad {
  readonly #client: Client
  readonly #buyers: Buyers
  /** The token of a plan. */
  token: string
  #underWay = 0
  #count = 0
  /** Calls that were due and were not sent, because too many were under way. */
  leftOut = 0

  constructor(client: Client, buyers: Buyers, token: string) {
    this.#client = client
    this.#buyers = buyers
    this.token = token
  }

  /** Sends calls with `agents` at once, each the next when the last has ended. Returns the calls of a second. */
  async measureCapacity(agents: number, seconds: number): Promise<number> {
    const began = performance.now()
    const end = began + seconds * 1000
    let ended = 0
    await Promise.all(
      Array.from({ length: agents }, async () => {
        while (performance.now() < end) {
          await this.#call(performance.now())
          if (performance.now() < end) ended += 1
        }
      }),
    )
    return ended / seconds
  }

  /** Sends calls at random times, so many a second on average, until the returned function is called and all have ended. */
  start(perSecond: number): () => Promise<void> {
    let due = performance.now()
    const timer = setInterval(() => {
      const now = performance.now()
      while (due <= now) {
        if (this.#underWay < MAX_UNDER_WAY) void this.#call(due)
        else this.leftOut += 1
        due += (-Math.log(1 - Math.random()) / perSecond) * 1000
      }
    }, TICK_MS)
    return async () => {
      clearInterval(timer)
      while (this.#underWay > 0) await delay(50)
    }
  }

  async #call(due: number): Promise<void> {
    this.#underWay += 1
    const nth = this.#count++
    const kind = KINDS[Math.floor(Math.random() * KINDS.length)] as Kind
    const pick = <Path>(paths: readonly Path[]): Path => paths[nth % paths.length] as Path
    if (kind === 'paid' || kind === 'mcp') await this.#buyers.buy(kind, due)
    else if (kind === 'token')
      await this.#client.send({
        kind,
        method: 'GET',
        path: '/v1/potus/live',
        headers: { 'x-service-token': this.token },
        due,
      })
    else await this.#client.send({ kind, method: 'GET', path: kind === '402' ? pick(UNPAID) : pick(FREE), due })
    this.#underWay -= 1
  }
}
