// Stored procedures in tests are functions of this file's users, sent as their text.
export async function procedure(container, id, body) {
  await container.scripts.storedProcedures.create({ id, body: body.toString() });
  const script = container.scripts.storedProcedure(id);
  return (key, args = [], options = {}) => script.execute(key, args, options);
}

// What a failed call says, with everything the client keeps of it.
export async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it did not fail');
}

export async function countOf(container, key) {
  const { resources } = await container.items
    .query('SELECT VALUE COUNT(1) FROM c', { partitionKey: key })
    .fetchAll();
  return resources[0];
}
