/** What a page says when a form came back with the code of a mistake. */
const SENTENCES: Readonly<Record<string, string>> = {
  validation_failed: 'That was not accepted. Please check what you entered and send it again.',
  rate_limited: 'That was too often in too short a time. Please wait a minute.',
}

/** The sentence for a code; null where there is none to explain. Codes we do not know are shown as they came. */
export function problem(code: unknown): string | null {
  if (typeof code !== 'string' || code === '') return null
  return SENTENCES[code] ?? `That did not work (${code}). Please try again in a minute.`
}
