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

const FORM = 'application/x-www-form-urlencoded'
const MULTIPART = 'multipart/form-data'

/** @param {string | undefined} media */
const isJson = (media) => media === 'application/json'

/** @param {unknown} value */
const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value))

/** @param {unknown} value @returns {readonly (readonly [string, string])[]} */
const pairs = (value) => Object.entries(value ?? {}).map(([name, each]) => [name, text(each)])

/** Quotes a value for the shell. @param {string} value */
const shell = (value) => `'${value.replaceAll("'", String.raw`'\''`)}'`

/** Returns a curl command. @param {CodeRequest} request */
export function curl({ method, url, media, body, files = {} }) {
  const lines = [method === 'GET' ? `curl -i ${shell(url)}` : `curl -i -X ${method} ${shell(url)}`]
  if (media === MULTIPART) {
    for (const [name, file] of Object.entries(files)) lines.push(`-F ${shell(`${name}=@${file}`)}`)
    for (const [name, value] of pairs(body)) lines.push(`-F ${shell(`${name}=${value}`)}`)
  } else if (media === FORM)
    for (const [name, value] of pairs(body)) lines.push(`--data-urlencode ${shell(`${name}=${value}`)}`)
  else if (media !== undefined && body !== undefined)
    lines.push(`-H ${shell(`content-type: ${media}`)}`, `--data-binary ${shell(text(body))}`)
  return lines.join(' \\\n  ')
}

/** Returns a module that calls with fetch, or pays with @x402/fetch. @param {CodeRequest} request @param {Terms} terms */
export function typescript({ method, url, media, body, files = {} }, { networks, price }) {
  const isPriced = networks.length > 0
  const names = Object.entries(media === MULTIPART ? files : {})
  const imports = [
    ...(isPriced ? [`import { env } from 'node:process'`] : []),
    ...(names.length > 0 ? [`import { openAsBlob } from 'node:fs'`] : []),
    ...(isPriced ? PAY_IMPORTS : []),
  ]
  const paying = isPriced
    ? [
        "const account = privateKeyToAccount(`0x${env.BUYER_KEY?.replace('0x', '')}`)",
        'const payingFetch = wrapFetchWithPaymentFromConfig(fetch, {',
        `  schemes: [${networks.map((id) => `{ network: '${id}', client: new ExactEvmScheme(account) }`).join(', ')}],`,
        `  spendControls: { maxAmountPerPayment: '$${price}' }, // the most that one call may cost`,
        '})',
      ]
    : []
  const form =
    media === MULTIPART
      ? [
          'const body = new FormData()',
          ...names.map(([name, file]) => `body.set(${text2(name)}, await openAsBlob(${text2(file)}), ${text2(file)})`),
          ...pairs(body).map(([name, value]) => `body.set(${text2(name)}, ${text2(value)})`),
        ]
      : []
  const options = [
    ...(method === 'GET' ? [] : [`  method: '${method}',`]),
    ...(media === undefined || body === undefined || media === MULTIPART || media === FORM
      ? []
      : [`  headers: { 'content-type': '${media}' },`]),
    ...(media === undefined || body === undefined ? [] : [`  body${typescriptBody(media, body)},`]),
  ]
  const call = `const answer = await ${isPriced ? 'payingFetch' : 'fetch'}(${text2(url)}`
  return [
    ...imports,
    ...(imports.length > 0 ? [''] : []),
    ...paying,
    ...form,
    ...(options.length === 0 ? [`${call})`] : [`${call}, {`, ...options, '})']),
    'console.log(answer.status, await answer.text())',
  ].join('\n')
}

const PAY_IMPORTS = [
  `import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'`,
  `import { ExactEvmScheme } from '@x402/evm'`,
  `import { privateKeyToAccount } from 'viem/accounts'`,
]

/** A string literal of TypeScript and Python. @param {string} value */
const text2 = (value) => JSON.stringify(value)

/** @param {string} media @param {unknown} body */
function typescriptBody(media, body) {
  if (media === MULTIPART) return ''
  const literal = JSON.stringify(body, null, 2).replaceAll('\n', '\n  ')
  if (media === FORM) return `: new URLSearchParams(${JSON.stringify(Object.fromEntries(pairs(body)))})`
  return isJson(media) ? `: JSON.stringify(${literal})` : `: ${text2(text(body))}`
}

/** Returns a program without packages. It gets the price of a priced call. @param {CodeRequest} request */
export function python({ method, url, media, body, files = {} }) {
  if (media === MULTIPART)
    return [
      'import requests',
      '',
      `files = {${Object.entries(files)
        .map(([name, file]) => `${text2(name)}: open(${text2(file)}, "rb")`)
        .join(', ')}}`,
      `answer = requests.request("${method}", ${text2(url)}, data=${JSON.stringify(Object.fromEntries(pairs(body)))}, files=files)`,
      'print(answer.status_code, answer.headers.get("PAYMENT-REQUIRED"), answer.text)',
    ].join('\n')
  const encoded = media === FORM ? 'urllib.parse.urlencode' : 'json.dumps'
  const value = media === FORM ? JSON.stringify(Object.fromEntries(pairs(body))) : pythonLiteral(body)
  const hasBody = media !== undefined && body !== undefined
  return [
    ...(hasBody && isJson(media) ? ['import json'] : []),
    'import urllib.error',
    ...(hasBody && media === FORM ? ['import urllib.parse'] : []),
    'import urllib.request',
    '',
    `request = urllib.request.Request(${text2(url)}, method="${method}")`,
    ...(hasBody
      ? [
          `request.add_header("content-type", "${media}")`,
          isJson(media) || media === FORM
            ? `request.data = ${encoded}(${value}).encode()`
            : `request.data = ${text2(text(body))}.encode()`,
        ]
      : []),
    'try:',
    '    answer = urllib.request.urlopen(request)',
    'except urllib.error.HTTPError as error:',
    '    answer = error',
    'print(answer.status, answer.headers.get("PAYMENT-REQUIRED"), answer.read().decode())',
  ].join('\n')
}

/** @param {unknown} value */
function pythonLiteral(value) {
  const words = new Map([
    ['true', 'True'],
    ['false', 'False'],
    ['null', 'None'],
  ])
  return JSON.stringify(value, null, 4)?.replace(
    /"(?:[^"\\]|\\.)*"|true|false|null/g,
    (token) => words.get(token) ?? token,
  )
}

/** Returns the MCP message that calls a tool. @param {string} name @param {object} input */
export function toolCall(name, input) {
  const params = { name, arguments: input }
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, null, 2)
}
