import { NETWORKS } from '../../../gateway/config/networks.ts'
import { createExactEvm } from '../../../gateway/methods/exact-evm/exact-evm.ts'
import { paymentMethodContract } from '../../contracts/payment-method.ts'
import { newWallet } from '../../support/gateway.ts'
import { createVoucher, voucherMethod, VOUCHERS } from '../../support/voucher-method.ts'
import { createPayment } from '../../support/wallet.ts'

const account = newWallet()
const network = NETWORKS['base-sepolia']

paymentMethodContract('EIP-3009 on an EVM network', {
  network,
  method: createExactEvm(network),
  pay: (accepted) => createPayment({ account, requirement: accepted as never, version: 2 }),
  forge(payment) {
    const payload = payment['payload'] as { readonly signature: string }
    const signature = `0x${'11'.repeat(64)}1b`
    return { ...payment, payload: { ...payload, signature } }
  },
})

paymentMethodContract('the voucher method of the tests', {
  network: VOUCHERS,
  method: voucherMethod,
  pay: async (accepted) => createVoucher(accepted as never, '0x00000000000000000000000000000000000000b7'),
  forge: (payment) => ({ ...payment, payload: { ...(payment['payload'] as object), code: 'forged' } }),
})
