/** Payments: base64 in a header or an argument of a tool, and the object in MCP's _meta. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { privateKeyToAccount } from 'viem/accounts'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { createExactEvm } from '../../../gateway/methods/exact-evm/exact-evm.ts'
import {
  recipientOfSettlement,
  revertText,
  settleData,
  transferOf,
} from '../../../gateway/methods/exact-evm/eip3009.ts'
import { type DecodedPayment, decodePayment } from '../../../gateway/methods/payment-method.ts'
import { parseJson } from '../../../gateway/validation/json-body.ts'
import { isObject } from '../../../gateway/validation/json.ts'
import { isForAnotherRoute } from '../../../gateway/x402/payment-requirements.ts'
import { identifierOf } from '../../../gateway/x402/payment-identifier.ts'
import { acceptedBy, type FuzzTarget } from '../target.ts'
import { createPayment, type Requirement } from '../../support/wallet.ts'

const network = NETWORKS['base-sepolia']
const methods = [createExactEvm(network), createExactEvm(NETWORKS.base)]
const PAY_TO = '0x00000000000000000000000000000000000000a1'
const NOW = 1_780_000_000
const BASE_URL = 'https://gate.test'
const requirements = { scheme: 'exact', network, amount: 5000n, payTo: PAY_TO, maxTimeoutSeconds: 300 } as const
const described = { url: `${BASE_URL}/v1/gold`, description: 'Gold.' }

const signed = (version: 1 | 2, envelope: Readonly<Record<string, unknown>> = {}): Promise<object> =>
  createPayment({
    account: privateKeyToAccount(`0x${'11'.repeat(32)}`),
    requirement: (version === 1
      ? (methods[0] as (typeof methods)[0]).acceptsV1(requirements, described)
      : (methods[0] as (typeof methods)[0]).acceptsV2(requirements)) as unknown as Requirement,
    version,
    nowSeconds: NOW,
    // The same nonce in every run, so that a run can be repeated.
    signed: { nonce: `0x${'ab'.repeat(32)}` },
    envelope,
  })

const SEEDS = (
  await Promise.all([
    signed(1),
    signed(2),
    signed(2, {
      resource: { url: `${BASE_URL}/v1/gold` },
      extensions: { 'payment-identifier': { info: { required: false, id: 'a'.repeat(16) } } },
    }),
  ])
).map((payment) => JSON.stringify(payment))

const WORDS = [
  'x402Version',
  'scheme',
  'network',
  'payload',
  'accepted',
  'extensions',
  'resource',
  'authorization',
  'signature',
  'validAfter',
  'validBefore',
  'nonce',
  'value',
  'exact',
  'base',
  'base-sepolia',
  'eip155:84532',
  'payment-identifier',
  'info',
  '0x',
  '0'.repeat(64),
]

/** What every decoded payment promises to the journal and the settlers. */
function check(payment: DecodedPayment): void {
  const { key, payer, payTo, amount, startsAt, expiresAt, identity, proof, envelope } = payment
  equal(key, key.toLowerCase())
  ok([payer, payTo].every((address) => /^0x[0-9a-f]{40}$/.test(address)))
  ok([amount, startsAt, expiresAt].every((number) => number >= 0n && number < 1n << 256n))
  equal(key.split('/').length, 4)
  // Written again, it is the same payment.
  const { version, scheme, network, payload, accepted, extensions, resource } = envelope
  const again = { x402Version: version, scheme, network, payload, accepted, extensions, resource }
  const reread = decodePayment(JSON.parse(JSON.stringify(again)) as object, methods)
  deepEqual({ ...reread, envelope: null }, { ...payment, envelope: null })
  equal(reread.identity, identity)
  const method = methods.find((each) => each.network.caip2 === payment.network)
  const verdict = method?.verify(payment, { ...requirements, network: method.network }, NOW)
  ok(verdict === null || (verdict?.reason !== '' && verdict?.message !== ''))
  // The signer recognises what the settler would send, and whom it pays.
  if (proof.length <= 2 + 2 * 4_096) equal(recipientOfSettlement(settleData(transferOf(payment))), payTo)
  acceptedBy(() => identifierOf(envelope, undefined))
  isForAnotherRoute({ path: '/v1/{name}' } as never, BASE_URL, envelope)
}

export const PAYMENTS: readonly FuzzTarget[] = [
  {
    name: 'payment-header',
    maxBytes: 20_000,
    seeds: [...SEEDS, ...SEEDS.map((seed) => Buffer.from(seed).toString('base64')), 'e30=', 'bnVsbA=='],
    words: WORDS,
    read(input) {
      for (const text of [input.toString('latin1'), input.toString('base64')]) {
        const payment = acceptedBy(() => decodePayment(text, methods))
        if (payment) check(payment)
      }
    },
  },
  {
    name: 'payment-object',
    maxBytes: 20_000,
    seeds: SEEDS,
    words: WORDS,
    read(input) {
      const presented = acceptedBy(() => parseJson(input))
      if (!isObject(presented)) return
      const payment = acceptedBy(() => decodePayment(presented, methods))
      if (payment) check(payment)
    },
  },
  {
    name: 'revert-text',
    maxBytes: 4_096,
    seeds: [`0x08c379a0${'20'.padStart(64, '0')}${'2'.padStart(64, '0')}${'6e6f'.padEnd(64, '0')}`, '0x', '0x08c379a0'],
    words: ['0x08c379a0', 'f'.repeat(64)],
    read(input) {
      const text = revertText(input.toString('latin1'))
      ok(text === null || text.length <= input.length)
    },
  },
]
