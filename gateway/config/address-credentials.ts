/** An address without the user name and the password in it, and the headers that carry them. */
export interface BareAddress {
  readonly address: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Takes the credentials out of an address. `fetch` refuses an address that has some, with an error that shows them, and
 * other clients do not send them. Throws TypeError if it is no address.
 *
 * @example withoutCredentials('https://user:word@host/path') → { address: 'https://host/path', headers: { authorization: 'Basic …' } }
 */
export function withoutCredentials(given: string): BareAddress {
  const { username, password } = new URL(given)
  if (username === '' && password === '') return { address: given, headers: {} }
  const credentials = Buffer.from([username, password].map(unescaped).join(':')).toString('base64')
  const url = new URL(given)
  url.username = url.password = ''
  return { address: url.href, headers: { authorization: `Basic ${credentials}` } }
}

/** A percent sign that escapes nothing stands for itself. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
