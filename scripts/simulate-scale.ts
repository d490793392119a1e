/**
 * `npm run simulate:scale -- --plan 1000`: simulates paid calls through gateways, journal and chain. Prints how long they
 * take, how full every part is, and which part is full first. The plans are those of docs/scale.md; flags change them.
 * The same flags always print the same figures.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readFlags, reportError } from './command-line.ts'
import { capacityOf, type JournalSetup, type SettlingSetup, type Setup, simulate } from './scale/paid-calls.ts'
import { BYTES_PER_PAYMENT, PLANS, POSTGRESQL, readCosts, SETTLING, SQLITE } from './scale/plans.ts'
import { type Prices, tableOf } from './scale/report.ts'

const USAGE = `Usage: npm run simulate:scale [-- OPTIONS]

  --plan NAME         ${Object.keys(PLANS).join(', ')} (default: all)
  --costs FILE        what calls cost, written by npm run bench -- --json (default: the figures of docs/scale.md)
  --case NAME         the paid call of that file (default: paid)
  --unpaid-case NAME  the unpaid one (default: 402)

These change the plan:
  --rate N            paid calls a second, of all cells
  --unpaid N          unpaid calls for each paid one
  --burst N           paid calls that come at once
  --cells N           independent cells, each with its own journal and its part of the buyers
  --machines N        gateway machines per cell
  --cores N           cores per machine
  --processes N       gateway processes per machine
  --engine NAME       sqlite: a file per machine; postgresql: a server per cell
  --sync-ms N         how long the journal's disk takes to sync
  --database-cores N  cores of the PostgreSQL server
  --scheme NAME       exact: each payment is moved on a chain; vouchers: none is, until its channel is claimed
  --networks N        chains among which payments are spread
  --share N           the part of each block that is left for us, 0 to 1
  --batch N           the most payments in a transaction
  --batching NAME     load: batches follow the load; block: a batch collects while another waits for its block
  --pending N         transactions of one wallet that a node keeps
  --seconds N         how long to simulate
  --seed N            another course of chance

These change what is printed:
  --gas-gwei N        price of gas (default 0.005, the lowest on Base)
  --coin-usd N        price of the coin that pays for gas (default 3000)
  --bytes N           bytes of the journal per payment (default: 2000 in SQLite, 4940 in PostgreSQL)
  --json              print everything as JSON
  --write             write the tables into docs/scale.md`

const DOCUMENT = join(resolve(import.meta.dirname, '..'), 'docs/scale.md')

const { values } = readFlags(USAGE, {
  options: {
    plan: { type: 'string' },
    costs: { type: 'string' },
    case: { type: 'string' },
    'unpaid-case': { type: 'string' },
    rate: { type: 'string' },
    unpaid: { type: 'string' },
    burst: { type: 'string' },
    cells: { type: 'string' },
    machines: { type: 'string' },
    cores: { type: 'string' },
    processes: { type: 'string' },
    engine: { type: 'string' },
    'sync-ms': { type: 'string' },
    'database-cores': { type: 'string' },
    scheme: { type: 'string' },
    networks: { type: 'string' },
    share: { type: 'string' },
    batch: { type: 'string' },
    batching: { type: 'string' },
    pending: { type: 'string' },
    seconds: { type: 'string' },
    seed: { type: 'string' },
    'gas-gwei': { type: 'string', default: '0.005' },
    'coin-usd': { type: 'string', default: '3000' },
    bytes: { type: 'string' },
    json: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
  },
})

/** A flag that cannot be used; its message says which. */
class FlagError extends Error {}

type TextFlag = {
  [Name in keyof typeof values]-?: (typeof values)[Name] extends string | undefined ? Name : never
}[keyof typeof values]

function numberOf(name: TextFlag, otherwise: number): number {
  const text = values[name]
  if (text === undefined) return otherwise
  const number = Number(text)
  if (text.trim() === '' || !Number.isFinite(number) || number < 0)
    throw new FlagError(`--${name} takes a number, not "${text}".`)
  return number
}

/** A count of things of which there must be one. */
function countOf(name: TextFlag, otherwise: number): number {
  const number = numberOf(name, otherwise)
  if (!Number.isInteger(number) || number < 1) throw new FlagError(`--${name} takes a whole number from 1 on.`)
  return number
}

function choiceOf<const Choice extends string>(name: TextFlag, choices: readonly Choice[], otherwise: Choice): Choice {
  const text = values[name] ?? otherwise
  const found = choices.find((choice) => choice === text)
  if (found === undefined) throw new FlagError(`--${name} takes ${choices.join(' or ')}, not "${text}".`)
  return found
}

function journalOf(plan: JournalSetup): JournalSetup {
  const engine = choiceOf('engine', ['sqlite', 'postgresql'], plan.engine)
  const base = engine === plan.engine ? plan : engine === 'sqlite' ? SQLITE : POSTGRESQL
  const syncSeconds = numberOf('sync-ms', base.syncSeconds * 1000) / 1000
  if (base.engine === 'sqlite') return { ...base, syncSeconds }
  return { ...base, syncSeconds, cores: countOf('database-cores', base.cores) }
}

function settlingOf(plan: SettlingSetup): SettlingSetup {
  if (choiceOf('scheme', ['exact', 'vouchers'], plan.scheme) === 'vouchers') return { scheme: 'vouchers' }
  const base = plan.scheme === 'exact' ? plan : SETTLING
  const share = numberOf('share', base.share)
  if (share <= 0 || share > 1) throw new FlagError('--share takes a part of the blocks, above 0 and up to 1.')
  return {
    ...base,
    networks: countOf('networks', base.networks),
    share,
    chain: { ...base.chain, pendingPerWallet: countOf('pending', base.chain.pendingPerWallet) },
    batching: {
      ...base.batching,
      size: countOf('batch', base.batching.size),
      policy: choiceOf('batching', ['load', 'block'], base.batching.policy),
    },
  }
}

function setupOf(name: string): Setup {
  const plan = PLANS[name]
  if (!plan) throw new FlagError(`There is no plan ${name}. The plans are ${Object.keys(PLANS).join(', ')}.`)
  const paidPerSecond = numberOf('rate', plan.paidPerSecond)
  if (paidPerSecond === 0) throw new FlagError('--rate takes a number above 0.')
  return {
    ...plan,
    ...readCosts(values.costs, values.case, values['unpaid-case']),
    paidPerSecond,
    unpaidPerPaid: numberOf('unpaid', plan.unpaidPerPaid),
    burst: numberOf('burst', plan.burst),
    cells: countOf('cells', plan.cells),
    machines: countOf('machines', plan.machines),
    coresPerMachine: countOf('cores', plan.coresPerMachine),
    processesPerMachine: countOf('processes', plan.processesPerMachine),
    journal: journalOf(plan.journal),
    settling: settlingOf(plan.settling),
    seconds: countOf('seconds', plan.seconds),
    seed: countOf('seed', plan.seed),
  }
}

/** Replaces what stands between the markers of this plan. */
function writeInto(text: string, name: string, tables: string): string {
  const [begin, end] = [`<!-- Written by npm run simulate:scale -- --plan ${name} --write -->`, '<!-- End -->']
  const from = text.indexOf(begin)
  const to = text.indexOf(end, from)
  if (from < 0 || to < 0) throw new FlagError(`docs/scale.md has no place for the plan ${name}: ${begin} … ${end}`)
  return `${text.slice(0, from + begin.length)}\n\n${tables}\n\n${text.slice(to)}`
}

try {
  const pricesOf = ({ journal }: Setup): Prices => ({
    gasGwei: numberOf('gas-gwei', 0),
    coinUsd: numberOf('coin-usd', 0),
    bytesPerPayment: numberOf('bytes', BYTES_PER_PAYMENT[journal.engine]),
  })
  const names = values.plan === undefined ? Object.keys(PLANS) : [values.plan]
  const plans = names.map((name) => ({ name, setup: setupOf(name) }))
  const found = plans.map(({ name, setup }) => ({
    plan: name,
    setup,
    // The burst is simulated apart, so that the other figures are those of an ordinary day.
    outcome: { ...simulate({ ...setup, burst: 0 }), burstSeconds: simulate(setup).burstSeconds },
    capacity: capacityOf(setup),
  }))
  if (values.json) process.stdout.write(`${JSON.stringify(found, null, 2)}\n`)
  for (const { plan, setup, outcome, capacity } of found) {
    const tables = tableOf(setup, outcome, capacity, pricesOf(setup))
    if (!values.json) process.stdout.write(`Plan ${plan}\n\n${tables}\n\n`)
    if (values.write) writeFileSync(DOCUMENT, writeInto(readFileSync(DOCUMENT, 'utf8'), plan, tables))
  }
} catch (error) {
  reportError(error, FlagError)
}
