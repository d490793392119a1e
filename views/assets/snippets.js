// @ts-check
/**
 * Writes a request as code. The gateway renders its pages with this module, and the pages refill the code while somebody
 * fills in the form.
 *
 * @typedef {object} CodeRequest
 * @property {string} method
 * @property {string} url
 * @property {string | undefined} [media] media type of the body
 * @property {unknown} [body] a value for JSON, fields for a form, otherwise text
 * @property {Readonly<Record<string, string>>} [files] names of the files of a multipart form, by field
 *
 * @typedef {object} Terms
 * @property {readonly string[]} networks CAIP-2 ids of the networks to pay on; empty if the call is free
 * @property {string} price dollars, "0.01"
 */

const JSON_MEDIA = 'application/json'
const FORM = 'application/x-www-form-urlencoded'
const MULTIPART = 'multipart/form-data'
const PAY_IMPORTS = [
  `import { env } from 'node:process'`,
  `import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'`,
  `import { ExactEvmScheme } from '@x402/evm'`,
  `import { privateKeyToAccount } from 'viem/accounts'`,
]

/** @param {unknown} value */
const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value))

/** A string of TypeScript and Python. @param {unknown} value */
const quoted = (value) => JSON.stringify(text(value))

/** Quotes a value for the shell. @param {string} value */
const shell = (value) => `'${value.replaceAll("'", String.raw`'\''`)}'`

/** The fields of a form as text. @param {unknown} body @returns {readonly (readonly [string, string])[]} */
const pairs = (body) => Object.entries(body ?? {}).map(([name, each]) => [name, text(each)])

/** The fields of a form as an object of TypeScript and Python. @param {unknown} body */
const fields = (body) => JSON.stringify(Object.fromEntries(pairs(body)))

/** Returns a curl command. @param {CodeRequest} request */
export function curl({ method, url, media, body, files = {} }) {
  const lines = [method === 'GET' ? `curl -i ${shell(url)}` : `curl -i -X ${method} ${shell(url)}`]
  if (media === MULTIPART)
    lines.push(
      ...Object.entries(files).map(([name, file]) => `-F ${shell(`${name}=@${file}`)}`),
      ...pairs(body).map(([name, value]) => `-F ${shell(`${name}=${value}`)}`),
    )
  else if (media === FORM)
    lines.push(...pairs(body).map(([name, value]) => `--data-urlencode ${shell(`${name}=${value}`)}`))
  else if (media !== undefined && body !== undefined)
    lines.push(`-H ${shell(`content-type: ${media}`)}`, `--data-binary ${shell(text(body))}`)
  return lines.join(' \\\n  ')
}

/** Returns a module that calls with fetch, or pays with @x402/fetch. @param {CodeRequest} request @param {Terms} terms */
export function typescript({ method, url, media, body, files = {} }, { networks, price }) {
  const isPriced = networks.length > 0
  const names = Object.entries(media === MULTIPART ? files : {})
  const imports = [
    ...(isPriced ? PAY_IMPORTS : []),
    ...(names.length > 0 ? [`import { openAsBlob } from 'node:fs'`] : []),
  ]
  const schemes = networks.map((id) => `{ network: '${id}', client: new ExactEvmScheme(account) }`).join(', ')
  const paying = [
    "const account = privateKeyToAccount(`0x${env.BUYER_KEY?.replace('0x', '')}`)",
    'const payingFetch = wrapFetchWithPaymentFromConfig(fetch, {',
    `  schemes: [${schemes}],`,
    `  spendControls: { maxAmountPerPayment: '$${price}' }, // the most that one call may cost`,
    '})',
  ]
  const form = [
    'const body = new FormData()',
    ...names.map(([name, file]) => `body.set(${quoted(name)}, await openAsBlob(${quoted(file)}), ${quoted(file)})`),
    ...pairs(body).map(([name, value]) => `body.set(${quoted(name)}, ${quoted(value)})`),
  ]
  const options = [...(method === 'GET' ? [] : [`  method: '${method}',`]), ...typescriptBody(media, body)]
  const call = `const answer = await ${isPriced ? 'payingFetch' : 'fetch'}(${quoted(url)}`
  return [
    ...imports,
    ...(imports.length > 0 ? [''] : []),
    ...(isPriced ? paying : []),
    ...(media === MULTIPART ? form : []),
    ...(options.length > 0 ? [`${call}, {`, ...options, '})'] : [`${call})`]),
    'console.log(answer.status, await answer.text())',
  ].join('\n')
}

/** @param {string | undefined} media @param {unknown} body */
function typescriptBody(media, body) {
  if (media === undefined || body === undefined) return []
  if (media === MULTIPART) return ['  body,']
  if (media === FORM) return [`  body: new URLSearchParams(${fields(body)}),`]
  const json = JSON.stringify(body, null, 2).replaceAll('\n', '\n  ')
  const value = media === JSON_MEDIA ? `JSON.stringify(${json})` : quoted(body)
  return [`  headers: { 'content-type': '${media}' },`, `  body: ${value},`]
}

/** Returns a program that gets the price of a priced call. It needs a package for files alone. @param {CodeRequest} request */
export function python({ method, url, media, body, files = {} }) {
  const opened = Object.entries(files).map(([name, file]) => `${quoted(name)}: open(${quoted(file)}, "rb")`)
  if (media === MULTIPART)
    return [
      'import requests',
      '',
      `files = {${opened.join(', ')}}`,
      `answer = requests.request("${method}", ${quoted(url)}, data=${fields(body)}, files=files)`,
      'print(answer.status_code, answer.headers.get("PAYMENT-REQUIRED"), answer.text)',
    ].join('\n')
  const json = { import: 'import json', data: `json.dumps(${pythonLiteral(body)})` }
  const form = { import: 'import urllib.parse', data: `urllib.parse.urlencode(${fields(body)})` }
  const sent = media === JSON_MEDIA ? json : media === FORM ? form : { import: '', data: quoted(body) }
  const hasBody = media !== undefined && body !== undefined
  return [
    ...(hasBody && sent.import ? [sent.import] : []),
    'import urllib.error',
    'import urllib.request',
    '',
    `request = urllib.request.Request(${quoted(url)}, method="${method}")`,
    ...(hasBody ? [`request.add_header("content-type", "${media}")`, `request.data = ${sent.data}.encode()`] : []),
    'try:',
    '    answer = urllib.request.urlopen(request)',
    'except urllib.error.HTTPError as error:',
    '    answer = error',
    'print(answer.status, answer.headers.get("PAYMENT-REQUIRED"), answer.read().decode())',
  ].join('\n')
}

/** @param {unknown} value */
function pythonLiteral(value) {
  const words = /** @type {Record<string, string>} */ ({ true: 'True', false: 'False', null: 'None' })
  return JSON.stringify(value, null, 4)?.replace(/"(?:[^"\\]|\\.)*"|true|false|null/g, (token) => words[token] ?? token)
}

/** Returns the MCP message that calls a tool. @param {string} name @param {object} input */
export function toolCall(name, input) {
  const params = { name, arguments: input }
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, null, 2)
}
