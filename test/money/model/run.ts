/** One random run: events happen in random order, then everything in progress ends, and the invariants are checked. */
import type { JournalEvent } from '../../../gateway/payments/journal/journal.ts'
import { type Bought, type Buyers, createBuyers } from './buyers.ts'
import { checkAlways, appended, checkAtEnd, type Facts } from './invariants.ts'
import type { Fate } from './steps.ts'
import { createGateway } from './process.ts'
import { createWorld, type Gateway, PAYERS, PRICE, type World } from './world.ts'

/** Three random numbers that decide what happens next, to which object, and how. */
export interface Choice {
  readonly what: number
  readonly which: number
  readonly how: number
}

/** Counts of what a run did. */
export interface Tally {
  payments: number
  calls: number
  crashes: number
  faults: number
  transfers: number
  delivered: number
  /** Payments delivered before they were final, whose block was then undone for good. */
  undone: number
  replayed: number
  released: number
  owed: number
  pending: number
  steps: Map<string, number>
}

export class InvariantBroken extends Error {}

const FATES: readonly Fate[] = [
  ...Array.from({ length: 26 }, (): Fate => 'done'),
  'before',
  'after',
  'fail',
  'failAfter',
]
const MOST_ROUNDS = 4_000

export async function run(choices: readonly Choice[], isStrict = false): Promise<Tally> {
  const tally: Tally = {
    payments: 0,
    calls: 0,
    crashes: 0,
    faults: 0,
    transfers: 0,
    delivered: 0,
    undone: 0,
    replayed: 0,
    released: 0,
    owed: 0,
    pending: 0,
    steps: new Map(),
  }
  const seen = new Map<string, readonly JournalEvent[]>()
  const broken: string[] = []
  let world: World
  const buyers = createBuyers(
    () => world,
    (bought, { receipt, body, headers, error }, word) => {
      if (error?.code === 'settlement_pending') tally.pending += 1
      if (!receipt?.success) return
      const text = body.toString()
      if ((bought.answers.get(text) ?? word) !== word)
        broken.push(`${bought.payment.key} bought answers to two requests`)
      bought.answers.set(text, word)
      if (headers['idempotent-replay']) tally.replayed += 1
      const transfer = world.chain.transferOf(bought.payment.key)
      if (isStrict && transfer && !world.sent.has(transfer.transaction))
        broken.push(`${bought.payment.key} was delivered for a transaction of others`)
      if (!transfer) broken.push(`${bought.payment.key} was delivered unpaid`)
      bought.body = text
    },
  )
  world = await createWorld(
    createGateway,
    (id) => {
      tally.crashes += 1
      buyers.lose(id)
    },
    isStrict,
  )
  for (const { address } of PAYERS) world.chain.balances.set(address, 3n * PRICE)
  await boot(world)

  const facts = async (): Promise<Facts> => {
    const rows = new Map<string, { record: never; events: readonly JournalEvent[] }>()
    const keys = buyers.purchases.flatMap(({ payments }) => payments.map(({ payment }) => payment.key))
    // Asked for at once, the journal finds all of them with one query.
    const records = await Promise.all(keys.map((key) => world.journal.find(key)))
    const histories = await Promise.all(
      keys.map((key, at) => (records[at] ? world.journal.events(key) : Promise.resolve([]))),
    )
    for (const [at, key] of keys.entries()) {
      const [record, events] = [records[at], histories[at] ?? []]
      if (!record) continue
      if (!appended(seen.get(key) ?? [], events)) broken.push(`an event of ${key} was edited`)
      seen.set(key, events)
      rows.set(key, { record: record as never, events })
    }
    const transfers = world.chain.transfers()
    const strangers = [...transfers.keys()].filter(
      (key) => !world.sent.has(world.chain.transferOf(key)?.transaction ?? '0x'),
    )
    return { purchases: buyers.purchases, rows, transfers, strangers: new Set(strangers), undone: world.chain.undone }
  }
  const expectInvariants = (more: readonly string[] = []): void => {
    const all = [...broken, ...more]
    if (all.length > 0) throw new InvariantBroken(`${all.join('; ')}\n${world.steps.history.join('\n')}`)
  }

  try {
    for (const choice of choices) {
      await happen(world, buyers, choice)
      if (choice.what % 16 === 0) expectInvariants(checkAlways(await facts()))
    }
    expectInvariants(checkAlways(await facts()))
    await finish(world, buyers)
    const last = await facts()
    expectInvariants([...checkAlways(last), ...checkAtEnd(last)])
    const states = [...last.rows.values()].map(({ record }) => record.state)
    tally.payments = states.length
    tally.calls = buyers.calls().length
    tally.transfers = last.transfers.size
    tally.released = states.filter((state) => state === 'released').length
    tally.owed = states.filter((state) => state === 'owed').length
    const given = buyers.purchases.flatMap(({ payments }) => payments).filter(({ body }) => body !== null)
    tally.delivered = given.length
    tally.undone = given.filter(({ payment }) => !last.transfers.has(payment.key)).length
    tally.steps = world.steps.counts
    for (const [name, count] of tally.steps) if (name.includes(' fail')) tally.faults += count
    return tally
  } finally {
    await world.close()
  }
}

/**
 * Starts a gateway. Like a real one, it accepts calls once its first recovery has ended or failed, or while that still
 * waits for the chain: every second process of a run.
 */
async function boot(world: World): Promise<void> {
  const gateway = world.boot()
  const open = (): void => {
    gateway.open = true
  }
  void gateway.reconcile(true).then(open, open)
  if (world.gateways.length % 2 === 0) open()
  await new Promise((wake) => setImmediate(wake))
}

async function happen(world: World, buyers: Buyers, { what, which, how }: Choice): Promise<void> {
  const { steps, chain, unbroadcast } = world
  const living = world.gateways.filter(({ dead }) => !dead)
  const pick = <Item>(items: readonly Item[]): Item | undefined => items[which % items.length]
  const gateway = pick(living)
  if (what < 55) await pick(steps.pending)?.happen(FATES[how % FATES.length] as Fate, which)
  else if (what < 68) buyers.act(which)
  else if (what < 75) chain.mine((tx) => (which + Number(BigInt(tx.hash) % 7n)) % 4 !== 0)
  else if (what < 76) for (const { hash } of [...chain.pool.values()].slice(0, 1)) chain.failing.add(hash)
  else if (what < 78) chain.reorganise(which % 4 === 0)
  else if (what < 82) world.advance(how % 5 === 0 ? 20 + (which % 700) : 1 + (which % 20))
  else if (what < 86) await (living.length < 2 ? boot(world) : undefined)
  else if (what < 88 && gateway) await steps.kill(gateway, how)
  else if (what < 91 && gateway?.open) void gateway.reconcile(false).catch(() => {})
  else if (what < 92 && gateway?.open) void gateway.watch().catch(() => {})
  else if (what < 94) pick(buyers.calls().filter(({ verdict }) => verdict === null))?.hangUp.abort(new Error('gone'))
  else if (what < 95) for (const tx of unbroadcast.splice(0, 1)) chain.broadcast(tx)
  else if (what < 97) frontRun(world, which, how)
  else if (what < 98) cancel(world, buyers, which)
  else if (what < 99) chain.balances.set((pick(PAYERS) as (typeof PAYERS)[0]).address, BigInt(how % 4) * PRICE)
  await new Promise((wake) => setImmediate(wake))
}

/** A stranger sends an authorization before its owner does: one that is in the pool, or one that was seen long ago. */
function frontRun({ chain, newHash }: World, which: number, how: number): void {
  const known = how % 2 === 0 ? chain.pool : chain.seen
  const tx = [...known.values()][which % Math.max(1, known.size)]
  if (!tx || tx.cancels) return
  const copy = { ...tx, hash: newHash() }
  chain.broadcast(copy)
  chain.mine(({ hash }) => hash === copy.hash)
}

/** A payer cancels an authorization. The order on the chain decides whether the cancellation comes in time. */
function cancel({ chain, newHash }: World, { purchases }: Buyers, which: number): void {
  const all = purchases.flatMap(({ payments }) => payments)
  const bought = all[which % Math.max(1, all.length)]
  if (bought) chain.broadcast({ ...bought.payment.tx, hash: newHash(), cancels: true })
}

/** Ends the run without further faults: pending steps succeed, blocks are mined, and every buyer repeats until served. */
async function finish(world: World, buyers: Buyers): Promise<void> {
  const { chain, unbroadcast } = world
  const drain = async (): Promise<void> => {
    for (let rounds = 0; ; rounds++) {
      await new Promise((wake) => setImmediate(wake))
      const [step] = world.steps.pending
      if (!step) return
      if (rounds > MOST_ROUNDS) throw new InvariantBroken('the gateway never becomes idle')
      // With choice 24 the product succeeds and transactions are sent.
      await step.happen('done', 24)
    }
  }
  const blocks = (): void => {
    for (const tx of unbroadcast.splice(0)) chain.broadcast(tx)
    chain.mine(() => true)
    chain.mine(() => true)
  }
  const living = (): Gateway | undefined => world.gateways.find(({ dead, open }) => !dead && open)
  await drain()
  blocks()
  if (!living()) await boot(world)
  await drain()
  const gateway = living() as Gateway
  const waits = ({ last, body, abandoned }: Bought): boolean =>
    !abandoned && body === null && last !== 'uncharged' && last !== 'spent'
  for (let tries = 0; tries < 6; tries++) {
    for (const purchase of buyers.purchases)
      for (const bought of purchase.payments.filter(waits))
        for (const word of bought.words) buyers.present(purchase, bought, gateway, word)
    await drain()
    blocks()
    world.advance(tries < 3 ? 20 : 400)
    blocks()
    void gateway.reconcile(false).catch(() => {})
    await drain()
    void gateway.watch().catch(() => {})
    await drain()
  }
}
