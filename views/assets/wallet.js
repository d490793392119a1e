// Buys with a browser wallet (EIP-1193): reads the payment requirements of a route, has the wallet sign a payment
// (EIP-712, EIP-3009) and repeats the request with it. Without a wallet, the page explains other ways.
const wallets = []
const choice = document.querySelector('#wallet-choice')
const chains = JSON.parse(document.querySelector('.wallet')?.dataset.chains ?? '[]')
const TYPES = {
  EIP712Domain: fields('name string, version string, chainId uint256, verifyingContract address'),
  TransferWithAuthorization: fields(
    'from address, to address, value uint256, validAfter uint256, validBefore uint256, nonce bytes32',
  ),
}
const REPEATS = 10

function fields(list) {
  return list.split(', ').map((pair) => ({ name: pair.split(' ')[0], type: pair.split(' ')[1] }))
}

/** Called for each wallet that announces itself. Shows what pays. */
function welcome(name, provider) {
  if (!choice || wallets.some((wallet) => wallet.provider === provider)) return
  wallets.push({ name, provider })
  choice.append(new Option(name, wallets.length - 1))
  document.querySelector('#wallet-none').hidden = true
  document.querySelector('#wallet-found').hidden = false
  for (const part of document.querySelectorAll('[data-wallet]')) part.hidden = false
}

window.addEventListener('eip6963:announceProvider', ({ detail }) => welcome(detail.info.name, detail.provider))
window.dispatchEvent(new Event('eip6963:requestProvider'))
if (wallets.length === 0 && window.ethereum) welcome('Browser wallet', window.ethereum)

/** The wallet of the sandbox, which its gateway holds. It has test money and signs payments of test money only. */
const testWallet = {
  async request({ method, params }) {
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch('/sandbox/wallet', { method: 'POST', headers, body: JSON.stringify({ method, params }) })
    const body = await answer.json()
    if (!answer.ok) throw new Error(body.message)
    return body.result
  },
}
const lend = document.querySelector('#test-wallet')
lend?.addEventListener('click', () => void openTestWallet())

async function openTestWallet() {
  const said = document.querySelector('#test-wallet-said')
  try {
    const [address] = await testWallet.request({ method: 'eth_requestAccounts' })
    welcome('Test wallet', testWallet)
    choice.value = String(wallets.findIndex(({ provider }) => provider === testWallet))
    lend.hidden = true
    said.textContent = `The test wallet ${address} has test money of the sandbox.`
  } catch (error) {
    said.textContent = `The test wallet could not be opened: ${error.message}`
  }
}

/**
 * Buys an answer and returns its response; a refusal is a response, too. `ask` sends the request with more headers. `sale` keeps
 * a payment that may have been sent: repeating it is never charged twice. The key proves that the purchase is this buyer's;
 * without it the answer, above all the token of a plan, would not be sent again.
 */
export async function buy(sale, amount, ask, say) {
  // A payment that nothing was bought with is signed again when it has expired.
  if (sale.isUnused && Date.now() / 1000 > sale.expires) sale.purchase = undefined
  if (!sale.purchase) {
    say('Getting the price…')
    const answer = await ask({})
    if (answer.status !== 402) return answer
    const { offer, now } = readOffer(answer, amount)
    say('Waiting for your signature in the wallet…')
    const payment = await sign(wallets[choice.value].provider, offer, now)
    sale.purchase = { 'payment-signature': payment, 'idempotency-key': randomHex(16) }
    sale.expires = Date.now() / 1000 + offer.maxTimeoutSeconds - 5
  }
  for (let turn = 0; turn < REPEATS; turn += 1) {
    say(turn === 0 ? 'Paying…' : 'The chain has not confirmed the payment yet. Trying again with the same payment…')
    const answer = await ask(sale.purchase)
    const { retry } = answer.ok ? { retry: 'new_quote' } : await answer.clone().json()
    if (retry === 'new_quote' || retry === 'never') sale.purchase = undefined
    sale.isUnused = retry === 'after_fix'
    if (retry !== 'same_payment') return answer
    await new Promise((wake) => setTimeout(wake, 1000 * Math.min(5, Number(answer.headers.get('retry-after')) || 1)))
  }
  throw new Error(
    'Not confirmed yet. Press the button again in a minute. It uses the same payment, so you never pay twice.',
  )
}

/** Reads the payment requirements, and the time of the service because the local clock may be wrong. */
function readOffer(answer, amount) {
  const { accepts } = fromBase64(answer.headers.get('payment-required'))
  const offer = accepts.find(({ scheme, network }) => scheme === 'exact' && network.startsWith('eip155:'))
  if (offer.amount !== amount) throw new Error('The price has changed. Please reload this page.')
  return { offer, now: Math.floor(Date.parse(answer.headers.get('date')) / 1000) }
}

async function sign(provider, offer, now) {
  const [from] = await provider.request({ method: 'eth_requestAccounts' })
  const chainId = Number(offer.network.split(':')[1])
  if (Number(await provider.request({ method: 'eth_chainId' })) !== chainId) await switchTo(provider, chainId)
  const authorization = {
    from,
    to: offer.payTo,
    value: offer.amount,
    validAfter: String(now - 600),
    validBefore: String(now + offer.maxTimeoutSeconds),
    nonce: `0x${randomHex(32)}`,
  }
  const { name, version } = offer.extra
  const typed = {
    types: TYPES,
    primaryType: 'TransferWithAuthorization',
    domain: { name, version, chainId, verifyingContract: offer.asset },
    message: authorization,
  }
  const signature = await provider.request({ method: 'eth_signTypedData_v4', params: [from, JSON.stringify(typed)] })
  return toBase64({ x402Version: 2, accepted: offer, payload: { signature, authorization } })
}

/** Switches the wallet to a chain, and adds the chain if the wallet does not know it. */
async function switchTo(provider, id) {
  const chainId = `0x${id.toString(16)}`
  const ask = () => provider.request({ method: 'wallet_switchEthereumChain', params: [{ chainId }] })
  try {
    await ask()
  } catch (error) {
    const chain = chains.find((each) => each.chainId === chainId)
    if (codeOf(error) !== 4902 || !chain) throw error
    await provider.request({ method: 'wallet_addEthereumChain', params: [chain] })
    await ask()
  }
}

/** Wallets on phones wrap the code. */
const codeOf = (error) => error.data?.originalError?.code ?? error.code

/** Returns the hash of the transaction that paid, or null. */
export function transactionOf(answer) {
  const receipt = answer.headers.get('payment-response')
  return receipt === null ? null : fromBase64(receipt).transaction
}

/** Returns the text for an error of the wallet or the connection. */
export function messageFor(error) {
  if (codeOf(error) === 4001) return 'You declined in the wallet. Nothing was paid.'
  if (codeOf(error) === 4902) return 'The wallet does not know this network. Add it there, then try again.'
  if (error instanceof TypeError)
    return 'The connection broke. Press the button again. It uses the same payment, so you never pay twice.'
  return error.message
}

const randomHex = (bytes) =>
  [...crypto.getRandomValues(new Uint8Array(bytes))].map((byte) => byte.toString(16).padStart(2, '0')).join('')

const toBase64 = (value) => btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value))))

const fromBase64 = (text) =>
  JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0))))
