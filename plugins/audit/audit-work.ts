import type { Plugins, WorkTools } from 'tollgate/plugin'
import { type Audit, audit, type AuditContext, type AuditRequest } from './audit.ts'
import { readingOptionsOf } from './reading-options.ts'

/** The body of a call. */
export type Form = Plugins['audit']['auditBacktest']['input']['body']

/** The input of an audit in a worker thread, as the handler passes it. */
export interface WorkInput extends Omit<AuditContext, 'ask'> {
  /** The input of the call. */
  readonly input: { readonly body: Form }
}

/** Runs an audit in a worker thread. Throws what `audit` throws. */
export default function auditInThread({ input, ...context }: WorkInput, { ask }: WorkTools): Promise<Audit> {
  return audit(requestOf(input.body), { ...context, ask })
}

/** Reads what to audit from the body of a call. Throws InvalidInput that names the member. */
export function requestOf({ file, bars, preset, n_trials, extra_bps, symbol, ...stated }: Form): AuditRequest {
  return {
    file: asBuffer(file.bytes),
    bars: bars && asBuffer(bars.bytes),
    preset,
    trials: n_trials,
    extraBps: extra_bps,
    symbol,
    stated: readingOptionsOf(stated),
  }
}

/** A Buffer arrives in a thread as a Uint8Array. */
const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength)
