/** Quotes as clients read them. */
import { z } from 'zod'
import type { Quote } from '../../gateway/x402/challenge.ts'

export interface Challenge {
  readonly x402Version: number
  readonly error: string
  readonly resource: { readonly url: string; readonly description: string; readonly tags?: string[] }
  readonly accepts: readonly (Record<string, unknown> & { readonly network: string })[]
  readonly extensions: {
    readonly bazaar: {
      readonly info: { readonly input: Record<string, unknown>; readonly output: { readonly example?: unknown } }
      readonly schema: object
      readonly routeTemplate?: string
    }
    readonly 'payment-identifier': { readonly info: object; readonly schema: object }
  }
}

export const decode = (quote: Quote): Challenge =>
  JSON.parse(Buffer.from(quote.header, 'base64').toString()) as Challenge
export const bodyOf = ({ v1 }: Quote): Challenge => JSON.parse(JSON.stringify(v1)) as Challenge

/** The schema by which the x402 1.2.0 client validates each `accepts` entry. */
export const entryOfV1 = z.object({
  scheme: z.enum(['exact']),
  network: z.enum(['base', 'base-sepolia']),
  maxAmountRequired: z.string().regex(/^\d+$/),
  resource: z.string().url(),
  description: z.string(),
  mimeType: z.string(),
  outputSchema: z.record(z.string(), z.any()).optional(),
  payTo: z.string().regex(/^0x[a-fA-F0-9]{40}$/),
  maxTimeoutSeconds: z.number().int(),
  asset: z.string().regex(/^0x[a-fA-F0-9]{40}$/),
  extra: z.record(z.string(), z.any()).optional(),
})
