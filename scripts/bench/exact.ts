/** One payment checked offline, against viem's recovery of the same signature: prints microseconds and the ratio. */
import { recoverTypedDataAddress } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createExact } from '../../gateway/methods/exact-evm/authorization.ts'
import { NETWORKS } from '../../gateway/config/networks.ts'
import { decodePayment } from '../../gateway/x402/payload.ts'
import type { PaymentRequirements } from '../../gateway/x402/payment-requirements.ts'
import { offerOfV2 } from '../../gateway/methods/exact-evm/requirements.ts'
import { base64, createPayment, type Requirement, typedData } from '../../test/support/wallet.ts'

const network = NETWORKS.base
const requirements: PaymentRequirements = {
  scheme: 'exact',
  network,
  amount: 5000n,
  payTo: '0x00000000000000000000000000000000000000A1',
  maxTimeoutSeconds: 300,
}
const account = privateKeyToAccount(generatePrivateKey())
const requirement = offerOfV2(requirements) as unknown as Requirement
const payment = await createPayment({ account, requirement, version: 2 })
const header = base64(payment)
const payload = decodePayment(header, [network])
const { from, to, nonce, signature } = payload
const texts = {
  value: String(payload.value),
  validAfter: String(payload.validAfter),
  validBefore: String(payload.validBefore),
}
const data = typedData(requirement, { from, to, nonce, ...texts })
const exact = createExact(network)
const now = Math.floor(Date.now() / 1000)

/** Mean microseconds of CPU per run. */
async function measure(runs: number, work: () => unknown): Promise<number> {
  for (let run = 0; run < runs / 10; run++) await work()
  const start = process.cpuUsage()
  for (let run = 0; run < runs; run++) await work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / runs
}

if (exact(payload, requirements, now) !== null) throw new Error('the payment is not accepted')
const viem = await measure(300, () => recoverTypedDataAddress({ ...data, signature }))
const ours = await measure(5_000, () => exact(payload, requirements, now))
const whole = await measure(5_000, () => exact(decodePayment(header, [network]), requirements, now))
const line = (name: string, us: number): string =>
  `${name.padEnd(40)} ${us.toFixed(1).padStart(8)} µs   ${(viem / us).toFixed(1)}x`
process.stdout.write(
  `${[
    line('viem recoverTypedDataAddress', viem),
    line('createExact, all checks', ours),
    line('decodePayment and createExact', whole),
  ].join('\n')}\n`,
)
