/** A data folder or a set of keys that the gateway must not be started with. The message says what is wrong and what to do. */
export class DataError extends Error {}
