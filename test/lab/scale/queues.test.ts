import { expect } from 'chai'
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'
import { Clock, Cores, EventLoop, GroupCommit, Lock, MAX_GROUP, SharedSync } from './queues.ts'

/** Calls `arrive` at random, `perSecond` times a second on average. */
function arriveAtRandom(clock: Clock, perSecond: number, end: number, arrive: () => void): void {
  const random = seededRandom(3)
  const next = (): void =>
    clock.after(-Math.log(1 - random()) / perSecond, () => {
      if (clock.now > end) return
      arrive()
      next()
    })
  next()
}

describe('the queues of the simulation', () => {
  it('run events in the order of their times, and those of one moment in the order in which they were planned', () => {
    const clock = new Clock()
    const order: string[] = []
    for (const [name, delay] of [
      ['c', 3],
      ['a1', 1],
      ['b', 2],
      ['a2', 1],
      ['late', 9],
    ] as const)
      clock.after(delay, () => order.push(`${name} at ${clock.now}`))
    clock.run(5)
    expect(order).to.deep.equal(['a1 at 1', 'a2 at 1', 'b at 2', 'c at 3'])
    expect(clock.now).to.equal(5)
  })

  it('keep tasks of one length waiting as long as Pollaczek and Khinchine say (M/D/1)', () => {
    const service = 0.002
    for (const use of [0.5, 0.8, 0.9]) {
      const clock = new Clock()
      const core = new Cores(clock, 1)
      const end = (300_000 * service) / use
      let [waited, tasks] = [0, 0]
      arriveAtRandom(clock, use / service, end, () => {
        const began = clock.now
        core.run(service, () => {
          waited += clock.now - began - service
          tasks += 1
        })
      })
      clock.run(end)
      expect(waited / tasks, `at ${use}`).to.be.closeTo(
        (use * service) / (2 * (1 - use)),
        ((use * service) / (2 * (1 - use))) * 0.05,
      )
      expect(core.busySeconds / end).to.be.closeTo(use, 0.01)
    }
  })

  it('finish one task per service time and core when there is too much to do', () => {
    const clock = new Clock()
    const cores = new Cores(clock, 4)
    let tasks = 0
    arriveAtRandom(clock, 5_000, 20, () => cores.run(0.001, () => (tasks += 1)))
    clock.run(20)
    expect(tasks / 20).to.be.closeTo(4_000, 5)
  })

  it('run one task of an event loop at a time, and those of two loops on two cores together', () => {
    const clock = new Clock()
    const cores = new Cores(clock, 2)
    const loops = [new EventLoop(cores), new EventLoop(cores)] as const
    const ends: string[] = []
    for (const [name, loop] of [
      ['a', loops[0]],
      ['a', loops[0]],
      ['b', loops[1]],
    ] as const)
      loop.run(1, () => ends.push(`${name}${clock.now}`))
    clock.run(10)
    expect(ends).to.deep.equal(['a1', 'b1', 'a2'])
    expect(loops.map(({ busySeconds }) => busySeconds)).to.deep.equal([2, 1])
  })

  it('make two loops wait for the one core that they have', () => {
    const clock = new Clock()
    const cores = new Cores(clock, 1)
    const ends: number[] = []
    for (const loop of [new EventLoop(cores), new EventLoop(cores)]) loop.run(1, () => ends.push(clock.now))
    clock.run(10)
    expect(ends).to.deep.equal([1, 2])
  })

  it('let one in at a time', () => {
    const clock = new Clock()
    const lock = new Lock()
    const ends: number[] = []
    for (let holder = 0; holder < 3; holder++)
      lock.take((release) =>
        clock.after(2, () => {
          ends.push(clock.now)
          release()
        }),
      )
    clock.run(10)
    expect(ends).to.deep.equal([2, 4, 6])
  })
})

describe('the group commits of the simulation', () => {
  /** Commits take a second and a hundredth per change. */
  function open() {
    const clock = new Clock()
    const groups: number[] = []
    const commits = new GroupCommit<'reserve' | 'move'>(clock, (size, done) => {
      groups.push(size)
      clock.after(1 + size / 100, done)
    })
    return { clock, groups, commits }
  }

  it('share one commit among the changes of one moment, and another among those that come meanwhile', () => {
    const { clock, groups, commits } = open()
    const ends: number[] = []
    const write = (): void => commits.write('move', () => ends.push(clock.now))
    for (let change = 0; change < 10; change++) write()
    for (let change = 0; change < 30; change++) clock.after(0.5 + change / 100, write)
    clock.run(10)
    expect(groups).to.deep.equal([10, 30])
    expect(new Set(ends)).to.deep.equal(new Set([1.1, 1.1 + 1.3]))
    expect([commits.changes, commits.commits]).to.deep.equal([40, 2])
  })

  it('pay for the sync once per group: many buyers cost little more time than one', () => {
    const { clock, commits } = open()
    let changes = 0
    const buy = (): void =>
      commits.write('move', () => {
        changes += 1
        buy()
      })
    for (let buyer = 0; buyer < 100; buyer++) buy()
    clock.run(200)
    // A hundred changes in two seconds; alone, each takes 1.01 s.
    expect(changes / 200).to.be.closeTo(50, 1)
  })

  it('take no more than a full group', () => {
    const { clock, groups, commits } = open()
    for (let change = 0; change < MAX_GROUP + 1; change++) commits.write('move', () => {})
    clock.run(10)
    expect(groups).to.deep.equal([MAX_GROUP, 1])
  })

  it('never mix kinds, and take first what has waited longest', () => {
    const { clock, groups, commits } = open()
    const order: string[] = []
    for (const kind of ['move', 'reserve', 'reserve', 'move'] as const) commits.write(kind, () => order.push(kind))
    clock.run(10)
    expect(groups).to.deep.equal([2, 2])
    expect(order).to.deep.equal(['move', 'move', 'reserve', 'reserve'])
  })

  it('share the syncs of a database log: none waits for more than two', () => {
    const clock = new Clock()
    const log = new SharedSync(clock, 1)
    const ends: number[] = []
    for (const delay of [0, 0.1, 0.2, 0.9])
      clock.after(delay, () => log.sync(() => ends.push(Number((clock.now - delay).toFixed(3)))))
    clock.run(10)
    expect(ends).to.deep.equal([1, 1.9, 1.8, 1.1])
    expect(log.syncs).to.equal(2)
  })
})
