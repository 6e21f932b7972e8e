/** Whether a field has no value; zero is one. */
export function isEmpty(value) {
  return (
    value === null || value === undefined || value === "" || value === false || (Array.isArray(value) && !value.length)
  );
}
