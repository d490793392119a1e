/** Circuit breakers of several processes, which open and close together. */
import { expect } from 'chai'
import { type Breaker, type Breakers, createBreakers } from '../../../gateway/products/breaker.ts'
import { type Peers, PeersInMemory } from '../../../gateway/stores/peers.ts'
import { msUntil, until } from '../../support/until.ts'

const OPERATION = 'getThing'

/** One process, and how often it has asked the others. */
interface Asking {
  readonly breakers: Breakers
  asked: number
}

describe('the circuit breakers of several processes', () => {
  const processes: Asking[] = []
  let now = 0
  let isAway = false

  beforeEach(() => {
    now = 0
    isAway = false
  })
  afterEach(() => {
    for (const { breakers } of processes.splice(0)) breakers.stop()
  })

  const clock = (): number => now
  /** A way to `hub` that is cut while `isAway`. */
  const wayTo = (hub: Peers, onAsked: () => void): Peers => ({
    addCalls: (added) => hub.addCalls(added),
    exchangePauses: async (changes) => {
      onAsked()
      if (isAway) throw new Error('unreachable')
      return hub.exchangePauses(changes)
    },
  })

  function start(hub: Peers | null): { breakers: Breakers; breaker: Breaker } {
    const breakers = createBreakers(hub && wayTo(hub, () => (process.asked += 1)))
    const process = { breakers, asked: 0 }
    const breaker = breakers.create(OPERATION, clock)
    breakers.start()
    processes.push(process)
    return { breakers, breaker }
  }
  const open = (count: number) => {
    const hub = new PeersInMemory(clock)
    return { hub, opened: Array.from({ length: count }, () => start(hub)) }
  }
  const fail = (breaker: Breaker, times: number): void => {
    for (let call = 0; call < times; call++) breaker.failed()
  }
  /** Waits until every process has asked the others twice. */
  const askedTwice = async (): Promise<void> => {
    const before = processes.map(({ asked }) => asked)
    await until(() => processes.every(({ asked }, at) => asked >= (before[at] ?? 0) + 2))
  }

  it('open everywhere within a second when one has opened, for what is left of the minute', async () => {
    const { opened } = open(3)
    const [one, other] = opened.map(({ breaker }) => breaker) as [Breaker, Breaker]
    fail(one, 4)
    await askedTwice()
    expect(other.isOpen()).to.equal(false)
    now += 1_000
    fail(one, 1)
    expect(await msUntil(() => opened.every(({ breaker }) => breaker.isOpen()))).to.be.lessThan(1_000)
    expect(() => other.assertClosed()).to.throw(/getThing failed 5 times in a row and is paused/)
    now += 60_001
    expect(opened.map(({ breaker }) => breaker.isOpen())).to.deep.equal([false, false, false])
  })

  it('all open again at the first failure of any after the minute', async () => {
    const { opened } = open(2)
    const [one, other] = opened.map(({ breaker }) => breaker) as [Breaker, Breaker]
    fail(one, 5)
    await until(() => other.isOpen())
    now += 60_001
    fail(other, 1)
    expect(other.isOpen()).to.equal(true)
    await until(() => one.isOpen())
  })

  it('all close at the first success of any after the minute', async () => {
    const { opened } = open(2)
    const [one, other] = opened.map(({ breaker }) => breaker) as [Breaker, Breaker]
    fail(one, 5)
    await until(() => other.isOpen())
    now += 60_001
    other.succeeded()
    await askedTwice()
    fail(one, 4)
    expect(one.isOpen(), 'four failures after it was closed').to.equal(false)
    fail(one, 1)
    expect(one.isOpen()).to.equal(true)
  })

  it('stay open when a call succeeds that began before', async () => {
    const { opened } = open(2)
    const [one, other] = opened.map(({ breaker }) => breaker) as [Breaker, Breaker]
    fail(one, 5)
    await until(() => other.isOpen())
    other.succeeded()
    one.succeeded()
    await askedTwice()
    expect([one.isOpen(), other.isOpen()]).to.deep.equal([true, true])
    now += 60_001
    fail(other, 1)
    expect(other.isOpen()).to.equal(true)
  })

  it('stay open if they have opened again before the others heard of a success', async () => {
    const { opened } = open(2)
    const [one, other] = opened.map(({ breaker }) => breaker) as [Breaker, Breaker]
    fail(one, 5)
    await until(() => other.isOpen())
    now += 60_001
    isAway = true
    await askedTwice()
    // Each has tried for itself.
    one.succeeded()
    other.failed()
    isAway = false
    await askedTwice()
    // Whichever arrives first: the success was one of the pause before.
    expect([one.isOpen(), other.isOpen()]).to.deep.equal([true, true])
  })

  it('count for themselves while the others cannot be reached, and tell what happened afterwards', async () => {
    const { opened } = open(2)
    const [one, other] = opened.map(({ breaker }) => breaker) as [Breaker, Breaker]
    isAway = true
    fail(one, 5)
    await askedTwice()
    expect([one.isOpen(), other.isOpen()]).to.deep.equal([true, false])
    isAway = false
    await until(() => other.isOpen())
  })

  it('are open in a process that starts meanwhile, but not for code that was loaded meanwhile', async () => {
    const { hub, opened } = open(1)
    const [{ breakers, breaker }] = opened as [{ breakers: Breakers; breaker: Breaker }]
    fail(breaker, 5)
    await askedTwice()
    const late = start(hub)
    await until(() => late.breaker.isOpen())
    breakers.forget(breaker)
    const reloaded = breakers.create(OPERATION, clock)
    await askedTwice()
    expect(reloaded.isOpen()).to.equal(false)
  })

  it('of one process alone open for a minute after five failures', () => {
    const { breaker } = start(null)
    fail(breaker, 4)
    breaker.succeeded()
    fail(breaker, 4)
    expect(breaker.isOpen()).to.equal(false)
    fail(breaker, 1)
    expect(breaker.isOpen()).to.equal(true)
    now += 60_000
    expect(breaker.isOpen()).to.equal(false)
    fail(breaker, 1)
    expect(breaker.isOpen()).to.equal(true)
  })
})
