/** One gateway process of the model: the real calls, payments, journal and recovery, paused at every call to the outside. */
import { createExactEvm } from '../../../gateway/methods/exact-evm/exact-evm.ts'
import type { ChainIntent } from '../../../gateway/methods/exact-evm/settlement-intent.ts'
import { createQuotes } from '../../../gateway/calls/quotes.ts'
import { createServe } from '../../../gateway/calls/serve.ts'
import { WorkQueues } from '../../../gateway/workers/queues.ts'
import type { CallRequest } from '../../../gateway/calls/request-and-answer.ts'
import type { Operation } from '../../../gateway/plugin/catalog.ts'
import type { Edition } from '../../../gateway/products/edition.ts'
import { ServiceError } from '../../../gateway/errors.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { recordLateSettlement, mayStillSettle } from '../../../gateway/payments/debts.ts'
import type { Journal } from '../../../gateway/payments/journal/journal.ts'
import { type Outcome, type Settler } from '../../../gateway/methods/payment-method.ts'
import type { Hex } from '../../../gateway/config/networks.ts'
import { createPayments } from '../../../gateway/payments/payments.ts'
import { createRecovery } from '../../../gateway/payments/recovery.ts'
import type { Tokens } from '../../../gateway/tokens/access-tokens.ts'
import { Reply } from '../../../gateway/plugin/plugin.ts'
import { PAY_TO } from '../../support/gateway.ts'
import { catalogOf, OPERATION } from '../../support/operation.ts'
import type { Tx } from './chain.ts'
import type { Process } from './steps.ts'
import { type Gateway, NETWORK, type World } from './world.ts'

const operation = {
  ...OPERATION,
  path: '/v1/word',
  route: 'GET /v1/word',
  id: 'getWord',
  params: null,
  query: null,
  example: null,
  timeoutSeconds: 30,
}
/** A route that delivers as soon as the payment is in a block, even though the block may still be replaced. */
const fast = { ...operation, id: 'getFastWord', route: 'GET /v1/fast', path: '/v1/fast', wait: 'mined' } as const
const catalog = catalogOf(operation, fast)
const log = createLog('silent')
/** Depth in blocks at which a transfer is final. Only the last block can be undone. */
export const DEPTH = 2

export function createGateway(world: World, id: string): Gateway {
  const process: Process = { id, dead: false }
  const { steps } = world
  const now = (): Date => new Date(world.now())
  const journal = steppedJournal(world, process)
  const settler = createSettler(world, process)
  const payments = createPayments({
    recipients: [{ network: NETWORK, payTo: PAY_TO }],
    baseUrl: 'https://gate.test',
    journal,
    log,
    methods: [createExactEvm(NETWORK)],
    settler,
    now,
    pause: () => steps.gate(process, 'pause', () => world.advance(1)),
  })
  const staleSeconds = 600
  const recovery = createRecovery({
    journal,
    settler,
    now,
    log,
    staleSeconds,
    answerRetentionSeconds: 604_800,
    isWorking: payments.inProgress.isBusy,
  })
  const bind = (bound: Operation) => ({
    operation: bound,
    validate: () => ({ params: {}, query: {}, body: null }),
    assertAvailable: () => {},
    handle: () => steps.gate(process, 'handle', (choice) => answer(world, choice)),
  })
  const routes = new Map([operation, fast].map((one) => [one.path, bind(one)]))
  const bounds = [...routes.values()].map((bound) => [bound.operation.id, bound] as const)
  const edition = { catalog, bound: new Map(bounds), hooks: [] } as unknown as Edition
  const tokens = { issue: unused, recall: unused, verify: unused, jwks: unused } as unknown as Tokens
  const serve = createServe({
    payments,
    quotes: createQuotes(payments),
    tokens,
    editions: { during: (_, work) => work() },
    hooks: { wantsRefusals: false, refused: () => {} },
    queues: new WorkQueues(2),
    counts: { count: () => Promise.reject(new Error('no operation has a limit')) },
    paused: { assertOpen() {}, confirmOpen: async () => {} },
    now,
    log,
  })
  return Object.assign(process, {
    open: false,
    call: async (request: CallRequest) => serve(edition, routes.get(new URL(request.url).pathname) as never, request),
    reconcile: (atStart: boolean) => recovery.run(atStart),
    watch: () => watch(world, journal),
  })
}

async function watch({ chain, journal: ledger }: World, journal: Journal): Promise<void> {
  for (const [key, tx] of chain.deep(DEPTH)) {
    // Skip transfers that are already recorded.
    if ((await ledger.find(key))?.state !== 'released') continue
    const record = await journal.find(key)
    if (mayStillSettle(record) && record.amount === tx.amount) await recordLateSettlement(journal, record, tx.hash)
  }
}

const unused = (): never => {
  throw new Error('The simulation has no access tokens.')
}

/** The product, which mostly succeeds. All answers differ, so that a buyer who gets another's answer is noticed. */
function answer(world: World, choice: number): unknown {
  if (choice % 8 === 1) throw new ServiceError('product_failed')
  if (choice % 8 === 2) return new Reply({ short: true }, { status: 418 })
  return { run: world.nextRun() }
}

/** The journal, with each operation as a step that the run controls. Notes which process changed a row last, as the journal does. */
function steppedJournal(world: World, process: Process): Journal {
  const { journal, steps, owners } = world
  const gate = <Result>(name: string, work: () => Promise<Result>): Promise<Result> =>
    steps.gate(process, `journal.${name}`, work)
  const owned = async <Result>(key: string, work: () => Promise<Result>, took: (result: Result) => boolean) => {
    const result = await work()
    if (took(result)) owners.set(key, process.id)
    return result
  }
  const move = (name: string, key: string, work: () => Promise<boolean>): Promise<boolean> =>
    gate(name, () => owned(key, work, Boolean))
  return {
    ...journal,
    owner: process.id,
    find: (key) => gate('find', () => journal.find(key)),
    findByIdentifier: (payer, identifier) =>
      gate('findByIdentifier', () => journal.findByIdentifier(payer, identifier)),
    reserve: (reservation) =>
      gate('reserve', () =>
        owned(
          reservation.key,
          () => journal.reserve(reservation),
          ({ reserved }) => reserved,
        ),
      ),
    answered: (key, ...rest) => move('answered', key, () => journal.answered(key, ...rest)),
    submitted: (key, ...rest) => move('submitted', key, () => journal.submitted(key, ...rest)),
    settled: (key, ...rest) => move('settled', key, () => journal.settled(key, ...rest)),
    released: (key, ...rest) => move('released', key, () => journal.released(key, ...rest)),
    refused: (key, attempt, outcome) =>
      move('refused', key, async () => {
        // All processes of the simulation share one open journal, so the owner of a row is compared here.
        if (outcome.unsent && owners.get(key) !== process.id) return false
        return journal.refused(key, attempt, outcome)
      }),
    settledByOthers: (key, ...rest) => move('settledByOthers', key, () => journal.settledByOthers(key, ...rest)),
    settledLate: (key, ...rest) => move('settledLate', key, () => journal.settledLate(key, ...rest)),
    claim: (key, attempt) => move('claim', key, () => journal.claim(key, attempt)),
    owed: (key, ...rest) => move('owed', key, () => journal.owed(key, ...rest)),
    openPayments: () =>
      gate('openPayments', async () =>
        (await journal.openPayments()).map((row) => ({ ...row, owner: owners.get(row.key) ?? 'nobody' })),
      ),
    liveOwners: () => gate('liveOwners', async () => world.living()),
    forgetAnswers: async () => 0,
  }
}

/** Settles on the simulated chain like the real settlers: record, send, wait, and take the outcome from the chain only. */
function createSettler(world: World, process: Process): Settler {
  const { steps, chain, sent } = world
  const gate = <Result>(name: string, work: (choice: number) => Result): Promise<Result> =>
    steps.gate(process, `settler.${name}`, work)

  const OWED = { isOwed: true } as const
  function settledBy(transaction: Hex): Extract<Outcome, { state: 'settled' }> {
    const isOurs = !world.isStrict || sent.has(transaction)
    return { state: 'settled', transaction, ...(isOurs ? {} : OWED) }
  }

  function verdict(tx: Tx): Outcome {
    const judged = chain.judge(tx, DEPTH)
    if (judged.state === 'settled') return settledBy(judged.transaction as Hex)
    if (judged.state === 'refused') return { state: 'refused', reason: 'invalid_transaction_state', message: 'No.' }
    const mined = chain.transferOf(tx.key)
    if (mined) return { ...settledBy(mined.transaction), provisional: true as const }
    return { state: 'pending', transaction: tx.hash }
  }

  return {
    kind: 'scripted',
    check: (payment) =>
      gate('check', () => {
        if (chain.transferOf(payment.key)) return { reason: 'invalid_transaction_state', message: 'Used.' }
        if ((chain.balances.get(payment.payer) ?? 0n) < payment.amount)
          return { reason: 'insufficient_funds', message: 'Too little.' }
        return null
      }),

    async settle({ key, payer, expiresAt }, { amount }, { record }) {
      const tx: Tx = {
        hash: world.newHash(),
        key,
        payer,
        amount,
        validBefore: Number(expiresAt),
      }
      sent.set(tx.hash, tx)
      const intent: ChainIntent = {
        kind: 'chain',
        transaction: tx.hash,
        raw: '0x',
        sender: PAY_TO,
        senderNonce: 0,
        fromBlock: 0,
      }
      if (!(await record(intent))) return { state: 'pending', transaction: null }
      const sending = await gate('send', (choice) => {
        const chosen = (['sent', 'sent', 'sent', 'accepted', 'lost', 'unsent'] as const)[choice % 6]
        if (chosen === 'sent') chain.broadcast(tx)
        // The node that accepted it may broadcast it at any time, or never.
        if (chosen === 'accepted') world.unbroadcast.push(tx)
        return chosen
      })
      if (sending === 'unsent')
        return { state: 'refused', reason: 'unexpected_settle_error', message: 'Not sent.', unsent: true }
      return gate('confirm', (): Outcome => {
        const outcome = verdict(tx)
        if (outcome.state !== 'settled' || !outcome.provisional || outcome.isOwed) return outcome
        const later = gate('later', () => verdict(tx)).catch((): Outcome => ({
          state: 'pending',
          transaction: tx.hash,
        }))
        return { ...outcome, later }
      })
    },

    status: ({ intent }) =>
      gate('status', (choice): Outcome => {
        const tx = intent?.transaction ? sent.get(intent.transaction) : undefined
        if (!tx) return { state: 'pending', transaction: null }
        const judged = verdict(tx)
        const isOpen = judged.state === 'pending' || (judged.state === 'settled' && judged.provisional)
        if (isOpen && choice % 2 === 0) chain.broadcast(tx)
        return judged
      }),

    health: () => ({ ready: true }),
    close: async () => {},
  }
}
