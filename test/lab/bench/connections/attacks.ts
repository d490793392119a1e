/** The attacks of `npm run lab -- connections`: one bad program on every connection, or a new one drawn each time. */
import * as fc from 'fast-check'
import { type Body, type Program, programs, type Sent } from '../../../support/connections/programs.ts'

export interface Attack {
  readonly name: string
  readonly connections: number
  /** Programs without end: each connection runs the next one. */
  readonly programs: (seed: number) => Iterator<Program>
}

const FUZZ = { mostBytes: 40_000_000, mostMs: 1_000, leastBytesPerSecond: 1_000 }
const BATCH = 500

/** The same programs for the same seed. */
function* drawn(seed: number): Generator<Program> {
  for (let batch = seed; ; batch += 1) yield* fc.sample(programs(FUZZ), { seed: batch, numRuns: BATCH })
}

function* always(program: Program): Generator<Program> {
  for (;;) yield program
}

const FAST: Omit<Program, 'steps'> = {
  caller: null,
  writeBytes: 65_536,
  bytesPerSecond: Number.POSITIVE_INFINITY,
  reads: 'at once',
  ends: 'by close',
}
const JSON_TYPE = ['Content-Type: application/json']
const MANY = Number.POSITIVE_INFINITY
const ONE_BYTE: Body = { kind: 'chunks', chunkBytes: 1, chunks: MANY, isEnded: false }

function post(path: string, body: Body, changes: Partial<Program> = {}): Program {
  const request: Sent = { target: `POST ${path}`, version: '1.1', headers: JSON_TYPE, body }
  return { ...FAST, steps: [{ kind: 'request', request, times: 1 }], ...changes }
}

function gets(changes: Partial<Program> = {}): Program {
  const request: Sent = { target: 'GET /v1/regime/current', version: '1.1', headers: [], body: null }
  return { ...FAST, steps: [{ kind: 'request', request, times: MANY }], ...changes }
}

const on = (connections: number, name: string, program: Program): Attack => ({
  name: `${name}, ${connections} ${connections === 1 ? 'connection' : 'connections'}`,
  connections,
  programs: () => always(program),
})

const UPLOAD: Body = { kind: 'length', bytes: 39_000_000, sent: 39_000_000 }

export const FUZZED = 'drawn programs, 50 connections'

export const ATTACKS: readonly Attack[] = [
  ...[1, 8, 30].map((count) => on(count, 'one-byte chunks after a 402', post('/v1/audit', ONE_BYTE))),
  ...[1, 30].map((count) => on(count, 'one-byte chunks of a free body', post('/audit', ONE_BYTE))),
  ...[1, 8, 30].map((count) => on(count, 'one-byte chunks of a message', post('/mcp', ONE_BYTE))),
  ...[1, 30].map((count) => on(count, 'pipelined GETs', gets())),
  on(30, 'pipelined GETs through a proxy', gets({ caller: 0 })),
  on(30, 'pipelined GETs, answers not read', gets({ reads: 'never' })),
  on(50, 'slow bodies after a 402', post('/v1/audit', UPLOAD, { bytesPerSecond: 20_000, writeBytes: 100 })),
  on(50, 'slow bodies of free audits', post('/audit', UPLOAD, { bytesPerSecond: 5_000, writeBytes: 100 })),
  on(50, 'tiny writes after a 402', post('/v1/audit', UPLOAD, { writeBytes: 1 })),
  { name: FUZZED, connections: 50, programs: drawn },
]
