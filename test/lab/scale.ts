/**
 * `npm run lab -- scale --plan 1000`: simulates paid calls through gateways, journal and chain. Prints how long they
 * take, how full every part is, and which part is full first. The plans are those of docs/scale.md; flags change them.
 * The same flags always print the same figures.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { flag, number, type Option, readOptions, refuse, root, say, text } from './experiment.ts'
import { capacityOf, type JournalSetup, type SettlingSetup, type Setup, simulate } from './scale/paid-calls.ts'
import { BYTES_PER_PAYMENT, PLANS, POSTGRESQL, readCosts, SETTLING, SQLITE } from './scale/plans.ts'
import { type Prices, tableOf } from './scale/report.ts'

const DOCUMENT = join(root, 'docs/scale.md')

/** An option that takes a whole number from 1 on. */
const count = (what: string): Option<number | null> => {
  const option = number('N', what, null, 1)
  return {
    ...option,
    read(given, name) {
      const value = option.read(given, name)
      return Number.isInteger(value ?? 1) ? value : refuse(`--${name} takes a whole number from 1 on.`)
    },
  }
}

/** An option that takes one of some words. */
const choice = <const Choice extends string>(choices: readonly Choice[], what: string): Option<Choice | null> => ({
  shown: 'NAME',
  text: what,
  read([given], name) {
    if (given === undefined) return null
    const found = choices.find((each) => each === given)
    return found ?? refuse(`--${name} takes ${choices.join(' or ')}, not "${given}".`)
  },
})

const { values } = readOptions({
  plan: text('NAME', `${Object.keys(PLANS).join(', ')} (default: all)`, null),
  costs: text('FILE', 'what calls cost, written by npm run lab -- bench --json (default: as in docs/scale.md)', null),
  case: text('NAME', 'the paid call of that file', 'paid'),
  'unpaid-case': text('NAME', 'the unpaid one', '402'),
  rate: number('N', 'paid calls a second, of all cells', null),
  unpaid: number('N', 'unpaid calls for each paid one', null),
  burst: number('N', 'paid calls that come at once', null),
  cells: count('independent cells, each with its own journal and its part of the buyers'),
  machines: count('gateway machines per cell'),
  cores: count('cores per machine'),
  processes: count('gateway processes per machine'),
  engine: choice(['sqlite', 'postgresql'], 'sqlite: a file per machine; postgresql: a server per cell'),
  'sync-ms': number('N', "how long the journal's disk takes to sync", null),
  'database-cores': count('cores of the PostgreSQL server'),
  scheme: choice(
    ['exact', 'vouchers'],
    'exact: each payment is moved on a chain; vouchers: none is, until its channel is claimed',
  ),
  networks: count('chains among which payments are spread'),
  share: number('N', 'the part of each block that is left for us, 0 to 1', null),
  batch: count('the most payments in a transaction'),
  batching: choice(['load', 'block'], 'load: batches follow the load; block: a batch collects while one is mined'),
  pending: count('transactions of one wallet that a node keeps'),
  seconds: count('how long to simulate'),
  seed: count('another course of chance'),
  'gas-gwei': number('N', 'price of gas; the default is the lowest on Base', 0.005),
  'coin-usd': number('N', 'price of the coin that pays for gas', 3_000),
  bytes: number('N', 'bytes of the journal per payment (default: 2000 in SQLite, 4940 in PostgreSQL)', null),
  json: flag('print everything as JSON'),
  write: flag('write the tables into docs/scale.md'),
})

function journalOf(plan: JournalSetup): JournalSetup {
  const engine = values.engine ?? plan.engine
  const base = engine === plan.engine ? plan : engine === 'sqlite' ? SQLITE : POSTGRESQL
  const syncSeconds = (values['sync-ms'] ?? base.syncSeconds * 1000) / 1000
  if (base.engine === 'sqlite') return { ...base, syncSeconds }
  return { ...base, syncSeconds, cores: values['database-cores'] ?? base.cores }
}

function settlingOf(plan: SettlingSetup): SettlingSetup {
  if ((values.scheme ?? plan.scheme) === 'vouchers') return { scheme: 'vouchers' }
  const base = plan.scheme === 'exact' ? plan : SETTLING
  const share = values.share ?? base.share
  if (share <= 0 || share > 1) refuse('--share takes a part of the blocks, above 0 and up to 1.')
  return {
    ...base,
    networks: values.networks ?? base.networks,
    share,
    chain: { ...base.chain, pendingPerWallet: values.pending ?? base.chain.pendingPerWallet },
    batching: {
      ...base.batching,
      size: values.batch ?? base.batching.size,
      policy: values.batching ?? base.batching.policy,
    },
  }
}

function setupOf(name: string): Setup {
  const plan = PLANS[name] ?? refuse(`There is no plan ${name}. The plans are ${Object.keys(PLANS).join(', ')}.`)
  const paidPerSecond = values.rate ?? plan.paidPerSecond
  if (paidPerSecond === 0) refuse('--rate takes a number above 0.')
  return {
    ...plan,
    ...readCosts(values.costs ?? undefined, values.case, values['unpaid-case']),
    paidPerSecond,
    unpaidPerPaid: values.unpaid ?? plan.unpaidPerPaid,
    burst: values.burst ?? plan.burst,
    cells: values.cells ?? plan.cells,
    machines: values.machines ?? plan.machines,
    coresPerMachine: values.cores ?? plan.coresPerMachine,
    processesPerMachine: values.processes ?? plan.processesPerMachine,
    journal: journalOf(plan.journal),
    settling: settlingOf(plan.settling),
    seconds: values.seconds ?? plan.seconds,
    seed: values.seed ?? plan.seed,
  }
}

/** Replaces what stands between the markers of this plan. */
function writeInto(text: string, name: string, tables: string): string {
  const [begin, end] = [`<!-- Written by npm run lab -- scale --plan ${name} --write -->`, '<!-- End -->']
  const from = text.indexOf(begin)
  const to = text.indexOf(end, from)
  if (from < 0 || to < 0) refuse(`docs/scale.md has no place for the plan ${name}: ${begin} … ${end}`)
  return `${text.slice(0, from + begin.length)}\n\n${tables}\n\n${text.slice(to)}`
}

const pricesOf = ({ journal }: Setup): Prices => ({
  gasGwei: values['gas-gwei'],
  coinUsd: values['coin-usd'],
  bytesPerPayment: values.bytes ?? BYTES_PER_PAYMENT[journal.engine],
})
const names = values.plan === null ? Object.keys(PLANS) : [values.plan]
const found = names
  .map((name) => ({ plan: name, setup: setupOf(name) }))
  .map(({ plan, setup }) => ({
    plan,
    setup,
    // The burst is simulated apart, so that the other figures are those of an ordinary day.
    outcome: { ...simulate({ ...setup, burst: 0 }), burstSeconds: simulate(setup).burstSeconds },
    capacity: capacityOf(setup),
  }))
if (values.json) say(JSON.stringify(found, null, 2))
for (const { plan, setup, outcome, capacity } of found) {
  const tables = tableOf(setup, outcome, capacity, pricesOf(setup))
  if (!values.json) say(`Plan ${plan}\n\n${tables}\n`)
  if (values.write) writeFileSync(DOCUMENT, writeInto(readFileSync(DOCUMENT, 'utf8'), plan, tables))
}
