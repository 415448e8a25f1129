using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Administration;
using Kahuna.Server.Hosting.Options;

if (args is [InitAdminCommand.Name, .. string[] rest])
{
    return await InitAdminCommand.RunAsync(rest);
}

if (args is [RecoverAdminCommand.Name, .. string[] recovery])
{
    return await RecoverAdminCommand.RunAsync(recovery);
}

if (args is [HealthCommand.Name, .. string[] question])
{
    return await HealthCommand.RunAsync(question, Environment.GetEnvironmentVariables());
}

NodeOptionsResult result = NodeOptionsParser.Parse(args, Environment.GetEnvironmentVariables());
if (result.Text is not null)
{
    Console.WriteLine(result.Text);
    return 0;
}

foreach (string error in result.Errors)
{
    Console.Error.WriteLine("kahuna-server: " + error);
}

return result.Options is null ? 1 : await ServerProcess.RunAsync(result.Options);
