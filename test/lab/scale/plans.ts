/** The worked plans of docs/scale.md. */
import { BASE } from './chain.ts'
import { type CallCost, readCost, RECORDED_COSTS } from './costs.ts'
import type { ExactSettling, JournalSetup, Setup } from './paid-calls.ts'

/** Machines and networks of a plan, without the cost of calls. */
type Plan = Omit<Setup, 'paid' | 'unpaid'>

/**
 * A network disk syncs in about 1 ms, one in the machine in a tenth of that. PostgreSQL also waits for its standby, which
 * is part of `syncSeconds`. The CPU of the server is the line through what changes cost one at a time (485 µs each) and 128
 * at a time (52 µs).
 */
export const SQLITE: JournalSetup = { engine: 'sqlite', syncSeconds: 0.001 }
export const POSTGRESQL: JournalSetup = {
  engine: 'postgresql',
  syncSeconds: 0.002,
  networkSeconds: 0.0005,
  cores: 8,
  statementSeconds: 440e-6,
  changeSeconds: 50e-6,
}

export const SETTLING: ExactSettling = {
  scheme: 'exact',
  networks: 1,
  chain: BASE,
  share: 1,
  batching: { size: 50, policy: 'load', waitSeconds: 0.02 },
  pollSeconds: 0.25,
}

const COMMON = { unpaidPerPaid: 1, nodeSeconds: 0.02, seed: 1, cells: 1 } as const

/** The plans, by paid calls a second. */
export const PLANS: Readonly<Record<string, Plan>> = {
  '10': {
    ...COMMON,
    paidPerSecond: 10,
    burst: 100,
    machines: 1,
    coresPerMachine: 2,
    processesPerMachine: 3,
    journal: SQLITE,
    settling: SETTLING,
    seconds: 120,
  },
  '1000': {
    ...COMMON,
    paidPerSecond: 1_000,
    burst: 1_000,
    machines: 3,
    coresPerMachine: 4,
    processesPerMachine: 2,
    journal: POSTGRESQL,
    settling: { ...SETTLING, networks: 4, chain: { ...BASE, pendingPerWallet: 1_000 } },
    seconds: 30,
  },
  '100000': {
    ...COMMON,
    paidPerSecond: 100_000,
    burst: 10_000,
    cells: 20,
    machines: 3,
    coresPerMachine: 8,
    processesPerMachine: 5,
    journal: POSTGRESQL,
    settling: { scheme: 'vouchers' },
    seconds: 10,
  },
}

/**
 * Bytes of the journal per payment, indexes included, with all changes of a payment and a small answer. PostgreSQL was
 * measured when a payment had one change more.
 */
export const BYTES_PER_PAYMENT = { sqlite: 2_000, postgresql: 4_940 } as const

/** The cost of the calls of a plan. */
export interface Costs {
  readonly paid: CallCost
  readonly unpaid: CallCost
}

/** Reads the costs of a paid and of an unpaid call. Without a file, those of docs/scale.md. */
export function readCosts(file = RECORDED_COSTS, paidCase = 'paid', unpaidCase = '402'): Costs {
  return { paid: readCost(file, paidCase, 'paid'), unpaid: readCost(file, unpaidCase, 'unpaid') }
}
