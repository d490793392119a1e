import { expect } from 'chai'
import { prove } from './model/prove.ts'
import { checkAlways, appended, checkAtEnd, type Facts } from './model/invariants.ts'

describe('the payment flow in a simulation', function () {
  // Hundreds of random runs, which are pure computation: a minute of a core that five files share with another.
  this.timeout(600_000)
  it('never charges twice, delivers unpaid or loses a payment in random runs with crashes and faults at every step', async () => {
    const { figures, failure } = await prove(200)
    expect(failure, failure ?? '').to.equal(null)
    expect(figures['runs']).to.equal(200)
    for (const name of ['transfers', 'delivered', 'replayed', 'released', 'pending', 'crashes', 'faults'])
      expect(figures[name], name).to.be.greaterThan(20)
  })

  it('delivers nothing for transactions of others in strict mode, and owes those payments', async () => {
    const { figures, failure } = await prove(200, { isStrict: true })
    expect(failure, failure ?? '').to.equal(null)
    for (const name of ['delivered', 'owed', 'crashes']) expect(figures[name], name).to.be.greaterThan(0)
  })

  /** Seeds whose runs once broke an invariant, until its cause was fixed, and which of the runs to repeat. */
  const REGRESSIONS = [
    // A payment that became a debt after its release asked its buyer to sign in, because it had given up its identifier.
    { seed: 1_615_308_997, skip: 196, runs: 1, isStrict: true },
    // The invariant was wrong: a fast route delivered, its block was undone, and the released payment bought once more.
    { seed: -479_807_975, skip: 3_174, runs: 1, isStrict: false },
  ]
  for (const { runs, ...options } of REGRESSIONS)
    it(`never charges twice, delivers unpaid or loses a payment in the runs of seed ${options.seed}, which once did`, async () => {
      const { failure } = await prove(runs, options)
      expect(failure, failure ?? '').to.equal(null)
    })

  describe('has invariants that', () => {
    const settled = [{ state: 'reserved' }, { state: 'answered' }, { state: 'submitted' }, { state: 'settled' }]
    const facts = (change: Partial<Facts> = {}, body: string | null = '{}', states = settled): Facts => ({
      purchases: [
        { word: 'word', payments: [{ payment: { key: 'p' }, body, answers: new Map(), abandoned: false }] },
      ] as never,
      rows: new Map([
        [
          'p',
          {
            record: { state: states.at(-1)?.state, attempt: 1, amount: 5n },
            events: states.map(({ state }, at) => ({ state, attempt: 1, at, cause: null, note: null })),
          },
        ],
      ]) as never,
      transfers: new Map([['p', 5n]]),
      strangers: new Set(),
      undone: new Set(),
      ...change,
    })
    const broken = (given: Facts): string => [...checkAlways(given), ...checkAtEnd(given)].join('; ')

    it('hold for a payment that was settled and delivered', () => {
      expect(broken(facts())).to.equal('')
    })

    it('report every way in which money can be lost', () => {
      expect(broken(facts({ transfers: new Map() })))
        .to.contain('delivered unpaid')
        .and.contain('the chain moved 0')
      expect(broken(facts({}, null))).to.contain('neither delivered nor owed')
      expect(broken(facts({}, '{}', settled.slice(0, 3)))).to.contain('left submitted')
      expect(broken(facts({}, '{}', [{ state: 'reserved' }, { state: 'settled' }]))).to.contain('took the path')
      const [purchase] = facts().purchases
      const first = purchase?.payments[0] as object
      const second = { ...first, payment: { key: 'q' } }
      const twice = { ...purchase, payments: [first, second] }
      const transfers = new Map([...facts().transfers, ['q', 5n] as const])
      expect(broken(facts({ purchases: [twice] as never, transfers }))).to.contain('charged 2 times')
      const abandoned = { ...purchase, payments: [{ ...first, abandoned: true }] }
      expect(broken(facts({ purchases: [abandoned] as never }))).to.contain('told that it was not')
    })

    it('accept a payment that a stranger sent only if it ends up owed, and no other debt', () => {
      const [purchase] = facts().purchases
      const abandoned = { ...purchase, payments: [{ ...purchase?.payments[0], body: null, abandoned: true }] }
      const late = [...settled.slice(0, 3), { state: 'released' }, { state: 'settled' }, { state: 'owed' }]
      const paidByStranger = { purchases: [abandoned] as never, strangers: new Set(['p']) }
      expect(broken(facts(paidByStranger, null, late))).to.equal('')
      expect(broken(facts(paidByStranger, null, late.slice(0, 5)))).to.contain('is not owed')
      expect(broken(facts(paidByStranger, null, late.slice(0, 4)))).to.contain('neither delivered nor owed')
      expect(broken(facts({ ...paidByStranger, strangers: new Set() }, null, late))).to.contain(
        'what we sent ourselves',
      )
    })

    it('accept a delivery that lost its payment to a reorganisation only if the route does not wait for finality', () => {
      const [purchase] = facts().purchases
      const released = [...settled.slice(0, 3), { state: 'released' }]
      const undone = { transfers: new Map(), undone: new Set(['p']) }
      const fast = { ...undone, purchases: [{ ...purchase, fast: true }] as never }
      expect(broken(facts(fast, '{}', released))).to.equal('')
      expect(broken(facts({ ...fast, undone: new Set() }, '{}', released))).to.contain('delivered unpaid')
      expect(broken(facts(undone, '{}', released))).to.contain('delivered unpaid')
    })

    it('accept two answers of a payment only if it was released between them after a reorganisation', () => {
      const answers = new Map([
        ['{"run":1}', 'word'],
        ['{"run":2}', 'word'],
      ])
      const [purchase] = facts().purchases
      const purchases = (fast: boolean): never =>
        [{ ...purchase, fast, payments: [{ ...purchase?.payments[0], answers }] }] as never
      const once = ['reserved', 'answered', 'submitted']
      const events = [...once, 'released', ...once, 'settled'].map((state, at) => ({
        state,
        attempt: at < 4 ? 1 : 2,
        at,
        cause: null,
        note: null,
      }))
      const rows = new Map([
        ['p', { record: { state: 'settled', attempt: 2, amount: 5n, answer: {} }, events }],
      ]) as never
      const undone = new Set(['p'])
      expect(broken(facts({ purchases: purchases(true), rows, undone }))).to.equal('')
      expect(broken(facts({ purchases: purchases(true), undone }))).to.contain('2 different answers')
      expect(broken(facts({ purchases: purchases(true), rows }))).to.contain('2 different answers')
      expect(broken(facts({ purchases: purchases(false), rows, undone }))).to.contain('2 different answers')
    })

    it('accept new events of a payment, but no changed ones', () => {
      const event = { at: 1, attempt: 1, state: 'reserved', cause: null, note: null } as const
      expect(appended([event], [event, { ...event, state: 'released' }])).to.equal(true)
      expect(appended([event], [{ ...event, at: 2 }])).to.equal(false)
      expect(appended([event], [])).to.equal(false)
    })
  })
})
