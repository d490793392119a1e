// Buys with a browser wallet (EIP-1193): reads the payment requirements of a route, has the wallet sign a payment
// (EIP-712, EIP-3009) and repeats the request with it. Without this script or a wallet, the page explains other ways.
const wallets = []
const forms = [...document.querySelectorAll('form.wallet-form')]
const choice = document.querySelector('#wallet-choice')
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

/** Called for each wallet that announces itself. Shows the forms that pay. */
function welcome(name, provider) {
  if (wallets.some((wallet) => wallet.provider === provider)) return
  wallets.push({ name, provider })
  choice.append(new Option(name, wallets.length - 1))
  document.querySelector('#wallet-none').hidden = true
  document.querySelector('#wallet-found').hidden = false
  for (const form of forms) form.hidden = false
}

window.addEventListener('eip6963:announceProvider', ({ detail }) => welcome(detail.info.name, detail.provider))
window.dispatchEvent(new Event('eip6963:requestProvider'))
if (wallets.length === 0 && window.ethereum) welcome('Browser wallet', window.ethereum)

for (const form of forms) {
  const button = form.querySelector('button')
  const output = document.createElement('output')
  output.hidden = true
  output.setAttribute('aria-live', 'polite')
  form.append(output)
  const say = (text) => {
    output.hidden = false
    output.textContent = text
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    button.disabled = true
    buy(form, say)
      .catch((error) => say(messageFor(error)))
      .finally(() => (button.disabled = false))
  })
}

/**
 * Buys the answer. Keeps a payment that may have been sent: repeating it is never charged twice. The key proves that the
 * purchase is this buyer's; without it the answer, above all the token of a plan, would not be sent again.
 */
async function buy(form, say) {
  if (!form.purchase) {
    say('Getting the price…')
    const { offer, now } = await readOffer(form)
    say('Waiting for your signature in the wallet…')
    const payment = await sign(wallets[choice.value].provider, offer, now)
    form.purchase = { 'payment-signature': payment, 'idempotency-key': randomHex(16) }
  }
  for (let turn = 0; turn < REPEATS; turn += 1) {
    say(turn === 0 ? 'Paying…' : 'The chain has not confirmed the payment yet. Trying again with the same payment…')
    const answer = await ask(form, form.purchase)
    const body = await answer.json()
    if (answer.ok) {
      form.purchase = undefined
      return say(paid(answer, body))
    }
    if (body.retry === 'new_quote' || body.retry === 'never') form.purchase = undefined
    if (body.retry !== 'same_payment') throw new Error(`${answer.status}: ${body.message}`)
    await new Promise((wake) => setTimeout(wake, 1000 * Math.min(5, Number(answer.headers.get('retry-after')) || 1)))
  }
  throw new Error(
    'Not confirmed yet. Press the button again in a minute. It uses the same payment, so you never pay twice.',
  )
}

const ask = ({ dataset }, headers) =>
  fetch(dataset.address, {
    method: dataset.method,
    headers: { accept: 'application/json', ...headers },
    cache: 'no-store',
  })

/** Reads the payment requirements, and the time of the service because the local clock may be wrong. */
async function readOffer(form) {
  const answer = await ask(form)
  if (answer.status !== 402) throw new Error(`${answer.status}: ${(await answer.json()).message}`)
  const { accepts } = fromBase64(answer.headers.get('payment-required'))
  const offer = accepts.find(({ scheme, network }) => scheme === 'exact' && network.startsWith('eip155:'))
  if (offer.amount !== form.dataset.amount) throw new Error('The price has changed. Please reload this page.')
  return { offer, now: Math.floor(Date.parse(answer.headers.get('date')) / 1000) }
}

async function sign(provider, offer, now) {
  const [from] = await provider.request({ method: 'eth_requestAccounts' })
  const chainId = Number(offer.network.split(':')[1])
  const chain = `0x${chainId.toString(16)}`
  if (Number(await provider.request({ method: 'eth_chainId' })) !== chainId)
    await provider.request({ method: 'wallet_switchEthereumChain', params: [{ chainId: chain }] })
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

function paid(answer, body) {
  const { transaction } = fromBase64(answer.headers.get('payment-response'))
  return `Paid in transaction ${transaction}\n\n${JSON.stringify(body, null, 2)}`
}

function messageFor(error) {
  if (error.code === 4001) return 'You declined in the wallet. Nothing was paid.'
  if (error.code === 4902) return 'The wallet does not know this network. Add it there, then try again.'
  if (error instanceof TypeError)
    return 'The connection broke. Press the button again. It uses the same payment, so you never pay twice.'
  return error.message
}

const randomHex = (bytes) =>
  [...crypto.getRandomValues(new Uint8Array(bytes))].map((byte) => byte.toString(16).padStart(2, '0')).join('')

const toBase64 = (value) => btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(value))))

const fromBase64 = (text) =>
  JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0))))
