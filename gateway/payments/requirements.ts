/** PaymentRequirements of an operation, and the one 402 that serves x402 v1 and v2. */
export interface Quote {
  /** Value of the PAYMENT-REQUIRED header: base64 of the v2 object. */
  readonly header: string
  /** The v2 object. */
  readonly v2: Readonly<Record<string, unknown>>
  /** The JSON body: a v1 object with code, message and retry beside its fields. */
  readonly v1: Readonly<Record<string, unknown>>
}
