import type { Upload, WorkTools } from 'tollgate/plugin'
import { type Audit, audit, type AuditContext, type AuditRequest } from './audit.ts'
import type { PresetName } from './cost-presets.ts'

/** The body of a call, as the catalog describes it. */
export interface Form {
  readonly file: Upload
  readonly bars?: Upload
  readonly preset: PresetName
  readonly n_trials: number
  readonly extra_bps: number
  readonly symbol?: string
}

/** The input of an audit in a worker thread, as the handler passes it. */
export interface WorkInput extends Omit<AuditContext, 'ask'> {
  /** The input of the call. */
  readonly input: { readonly body: Form }
}

/** Runs an audit in a worker thread. Throws what `audit` throws. */
export default function auditInThread({ input, ...context }: WorkInput, { ask }: WorkTools): Promise<Audit> {
  return audit(requestOf(input.body), { ...context, ask })
}

/** Reads what to audit from the body of a call. */
export function requestOf({ file, bars, preset, n_trials: trials, extra_bps: extraBps, symbol }: Form): AuditRequest {
  return { file: asBuffer(file.bytes), bars: bars && asBuffer(bars.bytes), preset, trials, extraBps, symbol }
}

/** A Buffer arrives in a thread as a Uint8Array. */
const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength)
