/** What to say for a code that the form came back with. */
const PROBLEMS: Readonly<Record<string, string>> = {
  validation_failed:
    'The file could not be read as a ledger, or a field was out of range. The layouts that can be read are below; sent with curl to /audit, the answer names the row.',
  body_too_large: 'The file is larger than 40 MB, or has more than 200,000 rows.',
  media_unsupported: 'The form has to be sent with a file.',
  rate_limited: 'Too many audits at once. Please wait a minute.',
  product_timeout: 'The audit took too long and was given up.',
  not_found: 'There is no such report.',
}

/** The sentence for a code; null for none. Codes are shown only where they are codes. */
export function problem(code: string): string | null {
  if (code === '') return null
  return PROBLEMS[code] ?? 'That did not work. Please try again in a minute.'
}
