/**
 * Verifies a signed preflight: `node --import tsx/esm test/lab/verify-preflight.ts [base url] [answer.json]`. Without a
 * file it verifies the demo. Exits with 1 if the signature is invalid.
 */
import { readFileSync } from 'node:fs'
import { verifyMessage } from 'viem'
import type { Preflight, PreflightSigner } from '../../schemas/types.d.ts'

const [base = 'http://127.0.0.1:4021', file] = process.argv.slice(2)
const get = async <Body>(path: string) => (await (await fetch(`${base}${path}`)).json()) as Body
const preflight = file
  ? (JSON.parse(readFileSync(file, 'utf8')) as Preflight)
  : await get<Preflight>('/v1/trade/preflight/demo')

// Canonical JSON (RFC 8785) of a parsed value: members sorted by name, everything else as JSON.stringify writes it.
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join()}}`
}
const { signature, ...answer } = preflight
const keys = await get<PreflightSigner>('/v1/trade/preflight/signer')
const signed = { address: signature.signer, message: canonical(answer), signature: signature.value }
const isValid = [keys, ...keys.previous].some((key) => key.address === signed.address) && (await verifyMessage(signed))

process.stdout.write(`${isValid ? 'valid' : 'NOT VALID'}: ${answer.decision}, signed by ${signed.address}\n`)
process.exitCode = isValid ? 0 : 1
