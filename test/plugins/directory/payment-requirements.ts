/** One price in the format of x402 v1 and of v2. */
export const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
export const PAYEE = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'
export const V2 = { scheme: 'exact', network: 'eip155:8453', asset: USDC, amount: '10000', payTo: PAYEE }
export const V1 = {
  scheme: 'exact',
  network: 'base',
  asset: USDC,
  maxAmountRequired: '10000',
  payTo: PAYEE,
  description: 'Weather',
  mimeType: 'application/json',
}
