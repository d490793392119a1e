import type { WorkTools } from 'tollgate/plugin'
import { type Audit, audit, type AuditContext, type AuditRequest } from './audit.ts'

/** The input of an audit in a worker thread, as the handler passes it. */
export type WorkInput = Omit<AuditContext, 'ask'> & { readonly request: AuditRequest }

/** Runs an audit in a worker thread. Throws what `audit` throws. */
export default function auditInThread({ request, ...context }: WorkInput, { ask }: WorkTools): Promise<Audit> {
  const { file, bars } = request
  const files = { file: asBuffer(file), bars: bars && asBuffer(bars) }
  return audit({ ...request, ...files }, { ...context, ask })
}

/** A Buffer arrives in a thread as a Uint8Array. */
const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer => Buffer.from(buffer, byteOffset, byteLength)
