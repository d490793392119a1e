/** The rate limit in one process, and in several that tell each other what they count, on a simulated network. */
import { expect } from 'chai'
import fc from 'fast-check'
import { RateLimited } from '../../../gateway/errors.ts'
import type { CallerAddress } from '../../../gateway/http/caller-address.ts'
import { createLimiter, type Limit, type Limiter } from '../../../gateway/http/rate-limit.ts'
import { type AddedCalls, type Peers, PeersInMemory } from '../../../gateway/stores/peers.ts'

const CALLER = '198.51.100.7'
const SECONDS = 10
const SHARE_MS = 100

const from = (address: string): CallerAddress => ({ address, isKnown: true, isShared: false })

function isAdmitted(limit: Limiter, address = CALLER, token: string | null = null): boolean {
  try {
    limit(from(address), token)
    return true
  } catch (error) {
    expect(error).to.be.instanceOf(RateLimited)
    return false
  }
}

/** How many of `calls` are admitted. */
const admitted = (limit: Limiter, calls: number, address?: string, token?: string | null): number =>
  Array.from({ length: calls }, () => isAdmitted(limit, address, token)).filter(Boolean).length

/** A clock whose timers run when it is moved on. What they start has settled when `advance` returns. */
class Simulation {
  now = 0
  #events: { readonly at: number; readonly run: () => void }[] = []

  readonly after = (ms: number, run: () => void): void => {
    this.#events.push({ at: this.now + ms, run })
  }

  async advance(ms: number): Promise<void> {
    const end = this.now + ms
    for (;;) {
      const [next] = this.#events.toSorted((one, other) => one.at - other.at)
      if (!next || next.at > end) break
      this.#events = this.#events.filter((event) => event !== next)
      this.now = Math.max(this.now, next.at)
      next.run()
      await settled()
    }
    this.now = end
  }

  limiter(limit: Limit, peers: Peers | null): Limiter {
    return createLimiter(limit, peers, { now: () => this.now, after: this.after })
  }

  /** The way to `hub`, on which a message and its answer take as long as `delay` says, each. */
  wayTo(hub: Peers, delay: () => number, isLost: () => boolean = () => false): Peers {
    const travel = (): Promise<void> => new Promise((resolve) => this.after(delay(), resolve))
    const send = async <T>(exchange: () => Promise<T>): Promise<T> => {
      await travel()
      if (isLost()) throw new Error('lost')
      const answer = await exchange()
      await travel()
      if (isLost()) throw new Error('lost')
      return answer
    }
    return {
      addCalls: (added) => send(() => hub.addCalls(added)),
      exchangePauses: (changes) => send(() => hub.exchangePauses(changes)),
    }
  }
}

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

describe('the rate limit of one process', () => {
  it('admits the calls of the limit, refuses the next with the time to wait, and begins again after the window', async () => {
    const time = new Simulation()
    const limit = time.limiter({ requests: 3, seconds: SECONDS }, null)
    expect(admitted(limit, 3)).to.equal(3)
    await time.advance(4_000)
    expect(() => limit(from(CALLER), null))
      .to.throw(RateLimited, 'More than 3 requests in 10 seconds.')
      .with.nested.property('headers.retry-after', '6')
    await time.advance(5_999)
    expect(isAdmitted(limit)).to.equal(false)
    await time.advance(1)
    expect(admitted(limit, 4)).to.equal(3)
  })

  it('counts an IPv6 customer as one, each address otherwise, and callers on the same machine never', () => {
    const limit = createLimiter({ requests: 2, seconds: SECONDS })
    expect(
      ['2001:db8::1', '2001:db8::ffff:2', '2001:db8:0:0:1::'].map((address) => isAdmitted(limit, address)),
    ).to.deep.equal([true, true, false])
    expect(isAdmitted(limit, '2001:db8:0:1::1')).to.equal(true)
    expect(admitted(limit, 2, '198.51.100.8')).to.equal(2)
    expect(isAdmitted(limit, '::ffff:198.51.100.8')).to.equal(false)
    expect(admitted(limit, 9, '127.0.0.1') + admitted(limit, 9, '::1')).to.equal(18)
  })

  it('counts callers on the same machine if others may call from there', () => {
    const limit = createLimiter({ requests: 2, seconds: SECONDS })
    const proxy = { address: '127.0.0.1', isKnown: false, isShared: true }
    for (const _ of [1, 2]) limit(proxy, null)
    expect(() => limit(proxy, null)).to.throw(RateLimited)
    expect(isAdmitted(limit, '127.0.0.1')).to.equal(true)
    const behindSilentProxy = { address: '127.0.0.1', isKnown: true, isShared: true }
    expect(() => limit(behindSilentProxy, null)).to.throw(RateLimited)
  })

  it('counts a token from all addresses, and does not count refused calls against an address', () => {
    const limit = createLimiter({ requests: 2, seconds: SECONDS })
    const token = 'header.claims.signature'
    expect(isAdmitted(limit, '198.51.100.1', token)).to.equal(true)
    expect(isAdmitted(limit, '198.51.100.2', token)).to.equal(true)
    expect(admitted(limit, 5, '198.51.100.3', token)).to.equal(0)
    expect(admitted(limit, 5, '198.51.100.3')).to.equal(2)
  })

  it('forgets no caller because another one sends new tokens with calls that are refused', () => {
    const limit = new Simulation().limiter({ requests: 1, seconds: SECONDS }, null)
    expect(admitted(limit, 2)).to.equal(1)
    for (let call = 0; call < 100_000; call++) isAdmitted(limit, '198.51.100.8', `token ${call}`)
    expect(isAdmitted(limit)).to.equal(false)
  })

  it('keeps a bounded number of callers: the oldest are forgotten', () => {
    const limit = createLimiter({ requests: 1, seconds: SECONDS })
    expect(admitted(limit, 2, 'first')).to.equal(1)
    for (let caller = 0; caller < 100_000; caller++) limit(from(`caller ${caller}`), null)
    expect(isAdmitted(limit, 'first')).to.equal(true)
    expect(isAdmitted(limit, 'caller 99999')).to.equal(false)
  })
})

describe('the rate limit of several processes', () => {
  /** Limiters that reach each other in `ms` milliseconds, one way. */
  function open(count: number, { requests = 100, ms = 1 } = {}) {
    const time = new Simulation()
    const hub = new PeersInMemory(() => time.now)
    const way = time.wayTo(hub, () => ms)
    return { time, limiters: Array.from({ length: count }, () => time.limiter({ requests, seconds: SECONDS }, way)) }
  }

  it('holds a caller that spreads its calls evenly to its limit and a tenth', async () => {
    const { time, limiters } = open(2)
    let total = 0
    for (let call = 0; call < 300; call++) {
      if (isAdmitted(limiters[call % 2] as Limiter)) total += 1
      await time.advance(20)
    }
    expect(total).to.be.within(100, 110)
  })

  it('tells the others at once when a caller has used a tenth of its limit, so a burst is held too', async () => {
    const { time, limiters } = open(4)
    let total = 0
    for (let call = 0; call < 1_000; call++) {
      if (isAdmitted(limiters[call % 4] as Limiter)) total += 1
      if (call % 10 === 9) await time.advance(1)
    }
    // Each of the three others may be a tenth of the limit behind, and what came in two round trips.
    expect(total).to.be.within(100, 100 + 3 * (10 + 2 * 5))
  })

  it('does not refuse a caller that stays below its limit', async () => {
    const { time, limiters } = open(3, { ms: 40 })
    for (let call = 0; call < 3_000; call++) {
      expect(isAdmitted(limiters[call % 3] as Limiter), `call ${call}`).to.equal(true)
      await time.advance(105)
    }
  })

  it('is remembered by the others when a process is replaced', async () => {
    const { time, limiters } = open(2)
    const [old, next] = limiters as [Limiter, Limiter]
    expect(admitted(old, 150)).to.equal(100)
    await time.advance(200)
    expect(isAdmitted(next)).to.equal(true)
    await time.advance(SHARE_MS + 2)
    expect(isAdmitted(next)).to.equal(false)
  })

  it('tells neither addresses nor tokens', async () => {
    const time = new Simulation()
    const told: AddedCalls[] = []
    const peers = new PeersInMemory(() => time.now)
    const limit = time.limiter(
      { requests: 5, seconds: SECONDS },
      {
        addCalls: (added) => {
          told.push(...added)
          return peers.addCalls(added)
        },
        exchangePauses: (changes) => peers.exchangePauses(changes),
      },
    )
    limit(from(CALLER), 'header.claims.signature')
    limit(from('2001:db8::1'), null)
    limit(from('2001:db8::2'), null)
    await time.advance(SHARE_MS)
    expect(told.map(({ calls }) => calls)).to.deep.equal([1, 1, 2])
    for (const { caller } of told) expect(caller).to.match(/^[\w-]{22}$/)
    expect(JSON.stringify(told)).not.to.match(/198|2001|header|claims|signature/)
  })

  for (const [what, addCalls] of [
    ['cannot be reached', () => Promise.reject(new Error('unreachable'))],
    ['do not answer', () => new Promise<never>(() => {})],
  ] as const)
    it(`counts alone while the others ${what}`, async () => {
      const time = new Simulation()
      const away: Peers = { addCalls, exchangePauses: async () => [] }
      const limiters = [away, away].map((peers) => time.limiter({ requests: 50, seconds: SECONDS }, peers))
      for (const limit of limiters) {
        expect(admitted(limit, 49)).to.equal(49)
        await time.advance(1_000)
        expect(admitted(limit, 20)).to.equal(1)
      }
      await time.advance(SECONDS * 1000)
      expect(admitted(limiters[0] as Limiter, 60)).to.equal(50)
    })

  it('shares again what is counted after the others have come back', async () => {
    const time = new Simulation()
    const hub = new PeersInMemory(() => time.now)
    let isAway = true
    const way = time.wayTo(
      hub,
      () => 1,
      () => isAway,
    )
    const [one, other] = [
      time.limiter({ requests: 100, seconds: SECONDS }, way),
      time.limiter({ requests: 100, seconds: SECONDS }, way),
    ]
    expect(admitted(one, 30) + admitted(other, 30)).to.equal(60)
    await time.advance(SHARE_MS * 2)
    isAway = false
    expect(admitted(one, 60)).to.equal(60)
    await time.advance(SHARE_MS * 2)
    // The other has counted 30 of its own, and hears of 60.
    expect(isAdmitted(other)).to.equal(true)
    await time.advance(SHARE_MS * 2)
    expect(admitted(other, 50)).to.be.within(9, 10)
  })

  const scenario = fc.record({
    processes: fc.integer({ min: 1, max: 4 }),
    requests: fc.integer({ min: 5, max: 60 }),
    calls: fc.array(
      fc.record({ process: fc.nat(3), gapMs: fc.integer({ min: 0, max: 60 }), burst: fc.integer({ min: 1, max: 8 }) }),
      {
        minLength: 50,
        maxLength: 250,
      },
    ),
    delays: fc.array(fc.integer({ min: 0, max: 25 }), { minLength: 1, maxLength: 20 }),
  })
  const MAX_ROUND_TRIP_MS = 50

  interface Admission {
    readonly at: number
    readonly process: number
  }

  async function admissionsIn(
    { processes, requests, calls, delays }: typeof scenario extends fc.Arbitrary<infer T> ? T : never,
    isLost?: () => boolean,
  ): Promise<Admission[]> {
    const time = new Simulation()
    const hub = new PeersInMemory(() => time.now)
    let sent = 0
    const way = time.wayTo(hub, () => delays[sent++ % delays.length] ?? 0, isLost)
    const limiters = Array.from({ length: processes }, () => time.limiter({ requests, seconds: SECONDS }, way))
    const admissions: Admission[] = []
    for (const { process: chosen, gapMs, burst } of calls) {
      const process = chosen % processes
      for (let call = 0; call < burst; call++)
        if (isAdmitted(limiters[process] as Limiter)) admissions.push({ at: time.now, process })
      await time.advance(gapMs)
    }
    return admissions
  }

  /** The most admissions in any time of this length. */
  const mostWithin = (ms: number, admissions: readonly Admission[]): number =>
    Math.max(
      0,
      ...admissions.map(({ at: from }) => admissions.filter(({ at }) => at >= from && at <= from + ms).length),
    )

  it('admits no more than the limit and, for each further process, what reaches it before it has heard of the others', async () => {
    let beyond = 0
    await fc.assert(
      fc.asyncProperty(scenario, async (each) => {
        const admissions = await admissionsIn(each)
        const first = admissions[0]?.at ?? 0
        const inWindow = admissions.filter(({ at }) => at < first + SECONDS * 1000)
        const unheard = Array.from({ length: each.processes }, (_, process) => {
          const own = admissions.filter((admission) => admission.process === process)
          const tenth = Math.ceil(each.requests / 10)
          return Math.min(
            mostWithin(SHARE_MS + 2 * MAX_ROUND_TRIP_MS, own),
            tenth + 2 * mostWithin(MAX_ROUND_TRIP_MS, own),
          )
        })
        const overshoot = unheard
          .toSorted((one, other) => other - one)
          .slice(0, -1)
          .reduce((sum, calls) => sum + calls, 0)
        expect(inWindow.length).to.be.at.most(each.requests + overshoot)
        // Windows follow each other, so any time of this length touches two of them.
        expect(mostWithin(SECONDS * 1000 - 1, admissions)).to.be.at.most(2 * (each.requests + overshoot))
        if (inWindow.length > each.requests) beyond += 1
      }),
      { numRuns: 300 },
    )
    expect(beyond, 'runs that went beyond the limit').to.be.greaterThan(0)
  })

  it('admits no more than the limit in each process, whatever is lost on the way', async () => {
    await fc.assert(
      fc.asyncProperty(scenario, fc.array(fc.boolean(), { minLength: 1, maxLength: 30 }), async (each, losses) => {
        let sent = 0
        const admissions = await admissionsIn(each, () => losses[sent++ % losses.length] ?? false)
        for (let process = 0; process < each.processes; process++) {
          const own = admissions.filter((admission) => admission.process === process)
          const first = own[0]?.at ?? 0
          expect(own.filter(({ at }) => at < first + SECONDS * 1000).length).to.be.at.most(each.requests)
        }
      }),
      { numRuns: 200 },
    )
  })
})
