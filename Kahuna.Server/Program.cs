Console.WriteLine("kahuna-server");
